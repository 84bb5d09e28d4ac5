"""A run on paper: what there is to read stays, what there is to press does not."""

from tests.viewer.example_runs import LIMITS

RUN = "/trace?sessionId=s-42&runId=run-019ad3c1&view=events"


def test_a_printed_run_has_verdict_limits_timeline_and_events_and_no_controls(watch):
    page = watch(viewport={"width": 720, "height": 1000}).open(RUN)
    page.emulate_media(media="print")
    for part in (".why", ".seal", ".gauges", ".tl", "table.events"):
        assert page.locator(part).first.is_visible(), part
    assert page.locator("table.events tbody tr").count() > len(LIMITS)
    for part in (".tabs", ".sections", ".foot", "main form"):
        found = page.locator(part)
        assert not any(found.nth(at).is_visible() for at in range(found.count())), part


def test_a_printed_run_is_some_pages_of_paper(watch):
    data = watch().open(RUN).pdf(format="A4")
    assert data.startswith(b"%PDF")
    assert data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") >= 1
