"""What people and evaluators say of a run, mostly after its end (SPEC E6, R6, D23)."""

from typing import Literal

from harness.events.base import Code, CountMap, Digest, Id, Name, RunEvent


class EvaluationRecorded(RunEvent):
    """A judgement of the run by a named evaluator; a later one of the same name replaces it."""

    type: Literal["evaluation.recorded"] = "evaluation.recorded"
    version: Literal[1] = 1
    evaluator: Code
    verdict: Code
    usage: CountMap | None = None
    """Figures behind the verdict, as counts."""
    rationale_digest: Digest | None = None


class FeedbackRecorded(RunEvent):
    """A person's feedback on the answer; the last one counts."""

    type: Literal["feedback.recorded"] = "feedback.recorded"
    version: Literal[1] = 1
    useful: bool
    actor: Name | None = None
    comment_digest: Digest | None = None


class CaseRecorded(RunEvent):
    """A case made from the run's query and answer; one per run."""

    type: Literal["case.recorded"] = "case.recorded"
    version: Literal[1] = 1
    case_id: Id
    verdict: Code
    """The gatekeeper's, which is kept and never prevents the case."""
