"""What people and evaluators said of a run, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.words.codes import plain
from ledger.words.format import count
from ledger.words.text import shorten
from viewer.present import json_tree
from viewer.words import gettext as _

WORDS_CHARS_MAX = 600


@dataclass(frozen=True, slots=True)
class Judgement:
    """One of them."""

    by: str
    verdict: str
    words: str
    tree: json_tree.Node | None
    """The words as a tree, where an evaluator gave its reasons as JSON."""
    figures: str
    at_us: int | None


def judgements(
    feedback: Mapping[str, Any] | None, evaluation: Mapping[str, Mapping[str, Any]] | None
) -> list[Judgement]:
    """The feedback that counts, then each evaluator's last word."""
    found = []
    if feedback is not None:
        by = _("Feedback by %(who)s", who=feedback["actor"]) if feedback.get("actor") else _("Feedback")
        verdict = _("Useful") if feedback.get("useful") else _("Not useful")
        words = shorten(str(feedback.get("comment") or ""), WORDS_CHARS_MAX)
        found.append(Judgement(by, verdict, words, None, "", feedback.get("recorded_us")))
    for name, said in (evaluation or {}).items():
        figures = " · ".join(f"{plain(key)} {count(amount)}" for key, amount in (said.get("usage") or {}).items())
        reasons = str(said.get("rationale") or "")
        tree = json_tree.parse(reasons.encode("utf-8", "replace"), open_depth=1)
        tree = tree if tree is not None and tree.children else None
        words = "" if tree else shorten(reasons, WORDS_CHARS_MAX)
        found.append(Judgement(name, plain(str(said.get("verdict", "?"))).capitalize(), words, tree, figures, None))
    return found
