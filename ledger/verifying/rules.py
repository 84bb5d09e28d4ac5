"""The rules that a database holds for every connection are those that migrations made: none is gone, changed or new."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.verifying.findings import Finding


def check_rules(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[Finding]:
    """What is not as it should be, each rule being a kind and a name, and how it is written."""
    both = sorted(wanted.keys() & found.keys())
    problems = [
        *(f"{rule} is not there" for rule in sorted(wanted.keys() - found.keys())),
        *(f"{rule} is another than was made" for rule in both if found[rule] != wanted[rule]),
        *(f"{rule} was added" for rule in sorted(found.keys() - wanted.keys())),
    ]
    return [Finding("rules_missing", problem) for problem in problems]
