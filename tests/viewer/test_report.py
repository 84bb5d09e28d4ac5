"""The report as a file: whole in itself, inert, with times of a named zone; and the command that makes it."""

import asyncio
import csv
import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from harness.errors import InvalidInput
from ledger import Ledger, LedgerReader
from ledger.audit.report import Key, LatestCheckpoint, Sample, Sheet, Wanted, read_report
from tests.ledger.blank import blank_at
from viewer.report.command import report as command
from viewer.report.page import render
from viewer.report.sections import sections
from viewer.report.zones import Zone

ALWAYS = Wanted(0, 4_000_000_000_000_000)
DAY = ("--from", "2027-01-15", "--to", "2027-01-16")


@pytest.fixture(scope="module")
def path(recorded_runs):
    return recorded_runs


@pytest.fixture(scope="module")
def report(path):
    async def read():
        async with await LedgerReader.open(path) as reader:
            return await read_report(reader, ALWAYS, Sample(99, "7"), Sheet(), 1_800_000_000_000_000)

    return asyncio.run(read())


class Seen(HTMLParser):
    """Which elements and attributes there are, and the text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def test_the_file_needs_nothing_beside_it_and_does_nothing(report):
    html = render(report, Zone.named("UTC"))
    seen = Seen(html)
    assert not seen.tags & {"script", "link", "img", "iframe", "object", "a"}
    assert not seen.attributes & {"src", "href", "style", "onerror", "onload"}
    assert not re.search(r"url\(|@import|https?://", html)
    assert "<script>x</script>@<b>" in seen.text  # the name of an agent  # CASES 46


def test_pages_are_numbered_and_carry_the_digest(report):
    html = render(report, Zone.named("UTC"))
    assert 'content: "Page " counter(page) " of " counter(pages)' in html
    assert f'@page {{ @bottom-left {{ content: "Report {report.digest[:16]}' in html
    assert report.digest in html
    assert report.sheet_digest in html


def test_times_are_those_of_a_named_zone_beside_utc(report):  # CASES 49
    text = Seen(render(report, Zone.named("Asia/Tokyo"))).text
    assert "15 Jan 2027 08:02:01 UTC" in text
    assert "15 Jan 2027 17:02:01 JST" in text
    assert "are those of Asia/Tokyo" in text
    assert "JST" not in Seen(render(report, Zone.named("UTC"))).text


def test_what_vouches_for_it_is_said_and_so_is_that_nothing_does(report):
    plain = Seen(render(report, Zone.named("UTC"))).text
    assert "no key: nothing is signed in this ledger" in plain
    assert "Without a signed checkpoint that is kept elsewhere" in plain
    key = Key("k2", "SIGN", "ED25519", "f" * 64)
    checkpoint = LatestCheckpoint("example.org/log", report.event_count - 2, "a" * 64, "k2", 1_800_000_000_000_000)
    signed = Seen(render(replace(report, keys=(key,), checkpoint=checkpoint), Zone.named("UTC"))).text
    assert "f" * 64 in signed
    assert "a" * 64 in signed
    assert "tachograph export --from 1970-01-01T00:00:00.000000Z --to" in signed
    assert "tachograph export" not in plain
    assert "The last 2 events, which no checkpoint vouches for yet." in signed


def test_every_figure_has_a_line_also_where_it_is_nothing(report):
    told = {line.name for section in sections(report) for line in section.lines}
    # Outcomes have a table of their own, and agents are in the sheet.
    assert len(told) == len(report.figures) - 2
    nothing = next(line for each in sections(report) for line in each.lines if line.name.startswith("Hidden"))
    assert (nothing.total, nothing.kinds, nothing.is_nothing) == ("0", (), True)


def call(path, *args):
    return CliRunner().invoke(command, [*(str(arg) for arg in args), "--db", str(path)], env={"TZ": "Europe/Berlin"})


def test_the_command_writes_page_and_sheet_with_the_digests_it_says(path, tmp_path):
    page, sheet = tmp_path / "r.html", tmp_path / "r.csv"
    result = call(path, *DAY, "-o", page, "--csv", sheet)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "7 runs, 0 still open"
    assert sha256(sheet.read_bytes()).hexdigest() in result.stdout
    assert result.stdout.split("digest ")[1].split()[0] in page.read_text()
    assert len(list(csv.DictReader(sheet.read_text().splitlines()))) == 7
    assert "15 Jan 2027 00:00:00 CET" in page.read_text()
    assert {each.name for each in tmp_path.iterdir()} == {"r.html", "r.csv"}


def test_a_day_begins_where_the_zone_says(path):
    counts = []
    for zone in ("UTC", "Pacific/Kiritimati"):
        result = call(path, *DAY, "--zone", zone, "--json")
        counts.append(json.loads(result.stdout)["report"]["run_count"])
    assert counts == [7, 7]
    result = call(path, "--from", "2027-01-15T08:02:00Z", "--to", "2027-01-15T09:04:30+01:00", "--json")
    assert json.loads(result.stdout)["report"]["run_count"] == 3


def test_an_agent_may_be_named_with_its_version(path):
    for agent, run_count in (("triage", 6), ("triage@1.4", 6), ("triage@2", 0)):
        assert json.loads(call(path, *DAY, "--agent", agent, "--json").stdout)["report"]["run_count"] == run_count


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((*DAY,), "say where to"),
        (("--from", "2027-01-16", "--to", "2027-01-15", "--json"), "to must be later than from"),
        (("--from", "yesterday", "--to", "2027-01-15", "--json"), "from must be a day or an RFC 3339 time"),
        (("--from", "2027-01-15T08:00:00", "--to", "2027-01-16", "--json"), "from must say its offset from UTC"),
        ((*DAY, "--zone", "Mars/Olympus", "--json"), "zone is not known here"),
        ((*DAY, "--sample", "1001", "--json"), "1001 is not in the range"),
        ((*DAY, "-o", "/no/such/folder/r.html"), "/no/such/folder/r.html cannot be written (No such file"),
    ],
)
def test_wrong_use_is_one_line_and_nothing_is_written(path, args, said):
    result = call(path, *args)
    assert (result.exit_code, said in result.stderr, result.stdout) == (2, True, "")


def test_a_report_that_cannot_be_made_leaves_the_earlier_one(tmp_path):
    path = blank_at(tmp_path / "runs.db")

    async def make():
        async with await Ledger.open(path):
            pass

    asyncio.run(make())
    page = tmp_path / "r.html"
    assert call(path, *DAY, "-o", page).exit_code == 0
    before = page.read_bytes()
    path.write_bytes(b"no ledger any more" * 100)
    assert call(path, *DAY, "-o", page).exit_code == 2
    assert page.read_bytes() == before
    assert not list(tmp_path.glob(".r.html*"))


def test_a_zone_that_is_no_zone_is_refused():
    for name in ("", "../../etc/passwd", "Europe/Nowhere"):
        with pytest.raises(InvalidInput):
            Zone.named(name)
