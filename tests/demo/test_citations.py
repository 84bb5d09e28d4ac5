"""What an answer cites, looked up in what tools returned."""

import pytest

from demo.rules.citations import citations

RESULTS = [
    {"matches": [{"file": "a.log", "line_no": 7, "text": "ERROR `x` broke\tat  noon and then\x1bsome more"}]},
    {"disks": [{"mount": "/var", "used_percent": 91.0}]},
    {"hits": [{"steps": ["Alert at 80% of `df -h`."]}]},
]


@pytest.mark.parametrize(
    "answer",
    [
        "`a.log:7`: `ERROR 'x' broke at noon and then some more`",
        "`a.log:7`: `ERROR 'x' broke at…`",
        "`/var` is 91.0% full",
        "`/var` is 91 % full",
        "Alert at 80%, look with `df -h`",
    ],
)
def test_what_a_tool_returned_is_real_evidence(answer):
    assert citations(answer, RESULTS).are_sound


@pytest.mark.parametrize(
    ("answer", "unfounded"),
    [
        ("`a.log:7`: `ERROR 'y' broke`", ("`ERROR 'y' broke`",)),
        ("`/var` is 92% full, not 91%", ("92%",)),
        ("`a.log` holds `nothing of the sort` and 91%", ("`nothing of the sort`",)),
    ],
)
def test_what_no_tool_returned_is_made_up(answer, unfounded):
    found = citations(answer, RESULTS)
    assert (found.unfounded, found.are_sound) == (unfounded, False)


def test_an_answer_without_any_evidence_is_not_sound():
    assert not citations("All is well with `/var`.", RESULTS).are_sound
