"""The answer when the model cannot give one: what the tools returned, put in words by rules."""

from collections.abc import Sequence

from demo.rules.findings import MARKS, findings
from demo.rules.results import Result

MODEL_FAILED = "MODEL_FAILED"
NO_EVIDENCE = "NO_EVIDENCE"
WHY = {
    MODEL_FAILED: "The model did not answer, so this is what the tools returned, without a diagnosis.",
    NO_EVIDENCE: "No evidence was found that answers the question. This is the state of the machine as a whole.",
}


def plain_answer(failure: str, results: Sequence[Result]) -> str:
    """Why there is no better answer, the facts, and what to do."""
    found = sorted(findings(results), key=lambda finding: -finding.severity)
    facts = [f"- {finding.text}{MARKS[finding.severity]} [{finding.source}]" for finding in found]
    body = "\n".join(facts) if facts else "Nothing could be measured, and no log could be searched."
    next_step = "Next: ask again in a moment, or name one resource to look at."
    return f"Degraded answer. {WHY[failure]}\n\n{body}\n\n{next_step}"
