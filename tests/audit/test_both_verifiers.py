"""The small verifier comes to the same as the large one of whatever it reads, and neither says more than it saw."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.audit.bundle import independent
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.errors import InvalidBundle
from ledger.audit.bundle.event_lines import EventLine
from ledger.audit.bundle.verifying import verify_bundle
from ledger.bytes import body_hash, genesis_link, next_link
from tests.audit.bundles import (
    KEY,
    LEDGER_ID,
    LOG,
    OTHER_KEY,
    SIZE,
    TRUSTED,
    MemoryLog,
    changed_line,
    members_of,
    write_members,
    write_period,
    write_run,
)
from tests.examples import examples


def both(path, keys_file):
    try:
        is_right = verify_bundle(path, TRUSTED).is_right
    except InvalidBundle:
        is_right = False
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return is_right, independent.main(str(path), str(keys_file)) == 0


def signed_with(change, stream_id="r:run-2"):
    """A log in which whoever has the key made an event's body say the same in other bytes, linked and signed."""
    log, heads = MemoryLog(), {}
    for place, (of, line) in enumerate(LOG.events):
        seq, link = heads.get(of, (0, genesis_link(LEDGER_ID, of)))
        body = change(line.body) if (of, line.seq) == (stream_id, 2) else line.body
        link = next_link(link, seq + 1, line.recorded_us, body_hash(body))
        heads[of] = seq + 1, link
        log.events.append((of, EventLine(place, seq + 1, line.recorded_us, link, body)))
    log.contents = LOG.contents
    return log


BODIES = {
    "a name that is there twice": lambda body: body.replace(b"{", b'{"type":"run.terminated",', 1),
    "spaces": lambda body: body.replace(b":", b": "),
    "another order": lambda body: json.dumps(dict(reversed(json.loads(body).items())), separators=(",", ":")).encode(),
    "a number that is none": lambda body: body.replace(b"{", b'{"a":NaN,', 1),
    "a letter in another way": lambda body: body.replace(b'"', b'"\\u0061', 1),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_could_be_read_in_two_ways_is_refused_whoever_signed_it(case, tmp_path, keys_file):
    assert both(write_period(tmp_path / "same", signed_with(lambda body: body), 0, SIZE), keys_file) == (True, True)
    assert both(write_period(tmp_path / "other", signed_with(BODIES[case]), 0, SIZE), keys_file) == (False, False)


def with_a_content_left_out(members):
    first, *others = members[names.CONTENTS].splitlines(keepends=True)
    entry = json.loads(first)
    dropped = {name: data for name, data in members.items() if not name.endswith(entry["digest"])}
    line = json.dumps(entry | {"state": "digest_only"}, sort_keys=True, separators=(",", ":")).encode()
    return dropped | {names.CONTENTS: b"".join((line, b"\n", *others))}


CHANGES = {
    "a number with a zero before it": changed_line(names.EVENTS, 2, b" 3 ", b" 03 "),
    "a number with a sign": changed_line(names.EVENTS, 2, b" 3 ", b" +3 "),
    "a content that is left out": with_a_content_left_out,
    "a content in a state that there is not": changed_line(names.CONTENTS, 0, b'"stored"', b'"archived"'),
    "something after the body": changed_line(names.EVENTS, 2, b"\n", b"\t\n"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_only_one_of_the_two_could_overlook_both_find(case, run_bundle, tmp_path, keys_file):
    assert both(write_members(tmp_path / "changed", CHANGES[case](members_of(run_bundle))), keys_file) == (False, False)


def test_an_event_of_the_log_is_not_said_to_have_come_later(tmp_path, keys_file):
    partly = members_of(write_run(tmp_path / "partly", LOG, tree=LOG.signed_tree(10)))
    place = partly[names.EVENTS].splitlines()[4].split(b" ")[0]
    moved = changed_line(names.EVENTS, 4, place + b" ", b"3 ")(partly)
    assert both(write_members(tmp_path / "moved", moved), keys_file) == (False, False)


def test_no_more_events_of_a_period_are_said_to_be_signed_than_there_are(tmp_path, keys_file):
    path = write_period(tmp_path / "period", LOG, 10, SIZE)
    tree = {"covered_count": SIZE - 9, "earlier_size": 10, "origin": "example.org/ledger-1", "size": SIZE}
    more = write_members(tmp_path / "more", members_of(path), says={"tree": tree})
    assert both(more, keys_file) == (False, False)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("{}", "--key", "{}"), ("{}", "--key"), ("{}", "{}", "{}")])
def test_of_wrong_use_the_small_verifier_says_the_right_one(arguments, run_bundle, capsys):
    assert independent.main(*(argument.format(run_bundle) for argument in arguments)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n"), said.err.startswith("usage: ")) == ("", 1, True)


@pytest.mark.parametrize("keys", [None, b"", b"\n", b"\xff\xfe", "a folder"])
def test_keys_that_are_none_are_not_the_bundles_own(keys, run_bundle, tmp_path, capsys):
    path = tmp_path / "none"
    if keys == "a folder":
        path.mkdir()
    elif keys is not None:
        path.write_bytes(keys)
    assert independent.main(str(run_bundle), str(path)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n"), str(path) in said.err) == ("", 1, True)


def test_the_small_verifier_says_whose_key_it_was(run_bundle, tmp_path, keys_file, capsys):
    assert independent.main(str(run_bundle), str(keys_file)) == 0
    assert "by a key of yours" in capsys.readouterr().out
    forged = write_run(tmp_path / "forged", LOG, tree=LOG.signed_tree(SIZE, key=OTHER_KEY))
    assert independent.main(str(forged)) == 0
    assert "on which trust rests" in capsys.readouterr().out


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    paths = [
        write_run(folder / "run", LOG, tree=LOG.signed_tree(SIZE, 9)),
        write_run(folder / "partly", LOG, tree=LOG.signed_tree(10)),
        write_period(folder / "period", LOG, 10, SIZE),
    ]
    (folder / "keys").write_text(f"{KEY.verifier}\n")
    return folder, [members_of(path) for path in paths]


PUT = [b"0", b"1", b"-", b" ", b"\t", b"\r", b"a", b"\xff", b"{", b"\n", b"\x00", b""]


@settings(examples(80), suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    bundle=st.integers(0, 2),
    name=st.sampled_from([names.EVENTS, names.EVENTS, names.CONTENTS, names.CHECKPOINT]),
    number=st.integers(0, 100),
    place=st.integers(0, 1_000),
    put=st.sampled_from(PUT),
    taken=st.integers(0, 1),
)
def test_whatever_is_done_to_a_line_both_come_to_the_same(whole, bundle, name, number, place, put, taken):
    folder, bundles = whole
    members = bundles[bundle]
    name = name if name in members else names.EVENTS
    *lines, end = members[name].split(b"\n")
    line = lines[number % len(lines)]
    at = place % (len(line) + 1)
    lines[number % len(lines)] = line[:at] + put + line[at + taken :]
    path = folder / "changed"
    path.unlink(missing_ok=True)
    found = both(write_members(path, members | {name: b"\n".join([*lines, end])}), folder / "keys")
    assert found in ((True, True), (False, False))
