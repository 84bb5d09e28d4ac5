"""The answer to a question about a cause: one cause, the evidence for it, and what else there is to know."""

from collections.abc import Iterator, Sequence

from demo.rules.causes import NOTHING_WRONG
from demo.rules.diagnosis import Diagnosis
from demo.rules.findings import cited, count, quoted
from demo.rules.results import Result, of_tool


def verdict(diagnosis: Diagnosis) -> str:
    """A sentence, and the line that names the cause."""
    if diagnosis.cause is not None:
        sentence = diagnosis.cause.sentence.format(what=diagnosis.what)
        said = f"The cause is most likely this: {sentence}."
    elif diagnosis.label == NOTHING_WRONG:
        said = "Neither the figures nor the logs show any trouble now."
    elif diagnosis.lines:
        said = f"There are {count(diagnosis.sign_count, 'error line')} of late that no known cause explains."
    else:
        said = "The cause cannot be told from what could be read."
    about = f" ({diagnosis.what})" if diagnosis.what else ""
    return f"{said}\n\nCause: {diagnosis.label}{about}"


def earlier_cases(results: Sequence[Result]) -> Iterator[str]:
    """Cases like this one, which are no evidence for it."""
    for result in of_tool(results, "similar_cases"):
        for case in result.value["cases"]:
            said = quoted(case["answer"].split("\n", 1)[0])
            yield f"- An earlier case like it, {case['run_id']} ({case['verdict']}): {said} [similar_cases]"


def evidence(diagnosis: Diagnosis) -> Iterator[str]:
    """The figures, and the first and the last of the log lines that say so."""
    for text in diagnosis.figures:
        yield f"- {text}. [host_metrics]"
    if diagnosis.lines:
        shown = "; ".join(f"{cited(line.as_match())}: {quoted(line.text)}" for line in diagnosis.lines)
        yield f"- {count(diagnosis.sign_count, 'line')} about it, first and last: {shown} [search_logs]"
