"""A bundle is right, or the first thing in it that is not as it claims is named: by both verifiers (SPEC E9)."""

import ast
import base64
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from harness.events import EVENT_TYPES
from ledger.audit.bundle import independent
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.errors import InvalidBundle
from ledger.audit.bundle.event_lines import head_line, parse_event_line
from ledger.audit.bundle.verifying import verify_bundle
from ledger.audit.errors import InvalidCheckpoint, NotSigned
from ledger.audit.notes.proofs import InclusionProof
from ledger.stored_events import CONTENT_NAMES
from tests.audit.bundles import (
    KEY,
    LOG,
    OTHER_KEY,
    SIZE,
    TRUSTED,
    MemoryLog,
    chained,
    changed_line,
    members_of,
    three_runs,
    write_members,
    write_period,
    write_run,
)
from tests.ledger.scripted import ScriptedRun

BEYOND_INDEPENDENT = {"a row", "a missing row", "another row", "consistency"}
"""What the small verifier compares with the manifest only."""


def events_in(members):
    lines = members[names.EVENTS].splitlines(keepends=True)
    return [parse_event_line(line, number) for number, line in enumerate(lines, 1)]


def without_line(name, number):
    def change(members):
        lines = members[name].splitlines(keepends=True)
        del lines[number]
        return members | {name: b"".join(lines)}

    return change


def twice(name, number):
    def change(members):
        lines = members[name].splitlines(keepends=True)
        return members | {name: b"".join((*lines, lines[number]))}

    return change


def linked_anew(change):
    """Whoever changes a body, and makes all links follow from it."""

    def changed(members):
        events = [event._replace(body=change(event.body)) for event in events_in(members)]
        return members | {names.EVENTS: b"".join(chained(events, "r:run-2"))}

    return changed


def with_member(name, change):
    return lambda members: members | {name: change(members[name])}


def without_content(members):
    return {name: data for name, data in members.items() if name != content_of(members)}


def content_of(members):
    return min(name for name in members if name.startswith(names.CONTENT_FOLDER))


def with_content_changed(members):
    return members | {content_of(members): b"something else"}


def with_another_content(members):
    return members | {names.CONTENT_FOLDER + "0" * 64: b"never named"}


def said_to_be_erased(members):
    first, *others = members[names.CONTENTS].splitlines(keepends=True)
    entry = orjson.loads(first)
    del entry["salt"]
    line = orjson.dumps(entry | {"state": "erased", "erased_seq": 13}, option=orjson.OPT_SORT_KEYS) + b"\n"
    return without_content(members) | {names.CONTENTS: b"".join((line, *others))}


def signed_by_another(members):
    checkpoint = LOG.checkpoint(SIZE).sign(OTHER_KEY)
    return members | {names.CHECKPOINT: checkpoint.note.encode(), names.KEYS: f"{OTHER_KEY.verifier}\n".encode()}


def of_another_root(members):
    lines = members[names.CHECKPOINT].split(b"\n")
    lines[2] = base64.b64encode(bytes(32))
    return members | {names.CHECKPOINT: b"\n".join(lines)}


RUN_CASES = {
    "a body": (changed_line(names.EVENTS, 4, b"succeeded", b"abandoned"), {}, "link_broken", "event 5"),
    "a body and all links": (linked_anew(lambda body: body.replace(b"1.4", b"1.5")), {}, "root_differs", None),
    "a body that is none": (linked_anew(lambda body: body[:-1] + b",}"), {}, "event_unreadable", "event 1"),
    "a time": (changed_line(names.EVENTS, 4, b" 18", b" 19"), {}, "link_broken", "event 5"),
    "a link": (changed_line(names.EVENTS, 4, b" 1ec8", b" 1ec9"), {}, "link_broken", "event 5"),
    "a place": (changed_line(names.EVENTS, 4, b"14 5 ", b"13 5 "), {}, "tree_differs", None),
    "an event removed": (without_line(names.EVENTS, 4), {}, "sequence_gap", "event 5"),
    "the last removed": (without_line(names.EVENTS, 12), {"event_count": 12}, "count_differs", None),
    "an event twice": (twice(names.EVENTS, 12), {"event_count": 14}, "sequence_gap", "event 14"),
    "a line of nothing": (with_member(names.EVENTS, lambda data: data + b"\n"), {}, "event_malformed", "event 14"),
    "a content": (with_content_changed, {}, "content_differs", None),
    "a missing content": (without_content, {}, "member_missing", None),
    "another content": (with_another_content, {}, "content_differs", names.CONTENTS),
    "an erased content": (said_to_be_erased, {}, "content_differs", None),
    "an entry": (without_line(names.CONTENTS, 0), {}, "content_missing", None),
    "an entry's type": (changed_line(names.CONTENTS, 0, b"json", b"Json"), {}, "content_differs", None),
    "an entry twice": (twice(names.CONTENTS, 0), {}, "content_differs", None),
    "withheld": (lambda members: members, {"content": "withheld"}, "content_differs", None),
    "a row": (changed_line(names.ROWS, 0, b'"SUCCESS"', b'"FAILED"'), {}, "row_differs", "row 1, diagnosis_run 0"),
    "a missing row": (without_line(names.ROWS, 1), {}, "row_differs", None),
    "another row": (twice(names.ROWS, 1), {}, "row_differs", "row 4"),
    "a root": (of_another_root, {}, "not_signed", names.CHECKPOINT),
    "a key": (signed_by_another, {}, "not_signed", names.CHECKPOINT),
    "consistency": (with_member(names.CONSISTENCY, lambda data: data[:-1]), {}, "proof_differs", names.CONSISTENCY),
    "too few hashes": (with_member(names.SUBTREES, lambda data: data[:-32]), {}, "tree_differs", None),
    "too many hashes": (with_member(names.SUBTREES, lambda data: data + bytes(32)), {}, "tree_differs", None),
    "a hash": (with_member(names.SUBTREES, lambda data: data[:-32] + bytes(32)), {}, "root_differs", None),
    "the run": (lambda members: members, {"run_id": "run-1"}, "link_broken", "event 1"),
    "the session": (lambda members: members, {"session_id": "session-9"}, "stream_identity", "event 1"),
    "the ledger": (lambda members: members, {"ledger_id": "ledger-2"}, "link_broken", "event 1"),
    "the number of events": (lambda members: members, {"event_count": 14}, "count_differs", names.EVENTS),
}


@pytest.mark.parametrize("case", RUN_CASES)
def test_what_somebody_changed_in_a_run_is_found_and_named(case, run_bundle, tmp_path, keys_file):
    change, says, problem, place = RUN_CASES[case]
    path = write_members(tmp_path / "changed.bundle", change(members_of(run_bundle)), says=says)
    finding = verify_bundle(path, TRUSTED).finding
    assert (finding and finding.problem) == problem
    assert place is None or finding.place == place
    if case not in BEYOND_INDEPENDENT:
        assert independent.main(str(path), str(keys_file)) == (0 if problem is None else 1)


def says_of_tree(**fields):
    tree = {"covered_count": 13, "earlier_size": 9, "origin": "example.org/ledger-1", "size": SIZE}
    return {"tree": tree | fields}


CLAIMS = {
    "fewer events are covered": (says_of_tree(covered_count=12), "proof_differs"),
    "more events are covered": (says_of_tree(covered_count=14), "count_differs"),
    "another origin": (says_of_tree(origin="example.org/ledger-2"), "checkpoint_differs"),
    "another size": (says_of_tree(size=SIZE - 1), "checkpoint_differs"),
    "another earlier size": (says_of_tree(earlier_size=8), "checkpoint_differs"),
    "no tree": ({"tree": None}, None),
}


def test_one_event_after_another_is_found_to_be_in_the_log(run_bundle, tmp_path):
    found = verify_bundle(run_bundle, TRUSTED)
    assert found.is_right
    assert found.signed_by == (str(KEY.verifier),)
    assert found.is_key_trusted
    assert (found.content_counts, found.row_count) == ({"stored": 6}, 3)
    assert found.manifest.tree.covered_count == found.manifest.event_count == 13


def test_without_a_key_trust_rests_on_the_bundle_and_that_is_said(tmp_path, run_bundle):
    forged = write_run(tmp_path / "forged.bundle", LOG, tree=LOG.signed_tree(SIZE, key=OTHER_KEY))
    assert verify_bundle(run_bundle).is_right
    assert not verify_bundle(run_bundle).is_key_trusted
    assert verify_bundle(forged).is_right
    assert verify_bundle(forged, TRUSTED).finding.problem == "not_signed"


def test_what_no_checkpoint_vouches_for_is_counted_and_is_wrong_where_a_key_is_trusted(tmp_path, keys_file):
    partly = verify_bundle(write_run(tmp_path / "partly", LOG, tree=LOG.signed_tree(10)), TRUSTED)
    assert (partly.is_right, partly.manifest.event_count, partly.manifest.tree.covered_count) == (True, 13, 4)
    not_at_all = write_run(tmp_path / "not", LOG)
    assert (verify_bundle(not_at_all).is_right, verify_bundle(not_at_all).signed_by) == (True, ())
    assert verify_bundle(not_at_all, TRUSTED).finding.problem == "not_signed"
    assert [independent.main(str(not_at_all), *keys) for keys in ((), (str(keys_file),))] == [0, 1]


def test_withheld_contents_leave_neither_text_nor_salt(tmp_path):
    path = write_run(tmp_path / "withheld", LOG, tree=LOG.signed_tree(SIZE), content="withheld")
    assert verify_bundle(path, TRUSTED).content_counts == {"withheld": 6}
    assert b"salt" not in members_of(path)[names.CONTENTS]
    assert not any(name.startswith(names.CONTENT_FOLDER) for name in members_of(path))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_manifest_that_claims_something_else_is_found_out(claim, run_bundle, tmp_path, keys_file):
    says, problem = CLAIMS[claim]
    path = write_members(tmp_path / "changed.bundle", members_of(run_bundle), says=says)
    if problem is None:
        with pytest.raises(InvalidBundle):
            verify_bundle(path, TRUSTED)
    else:
        assert verify_bundle(path, TRUSTED).finding.problem == problem
    assert independent.main(str(path), str(keys_file)) == 1


def test_a_kept_checkpoint_must_be_that_of_the_log(run_bundle):
    assert verify_bundle(run_bundle, TRUSTED, LOG.checkpoint(SIZE).sign(KEY)).is_right
    assert verify_bundle(run_bundle, TRUSTED, LOG.checkpoint(9).sign(KEY)).is_right
    other = three_runs(writer="x").checkpoint(9).sign(KEY)
    assert verify_bundle(run_bundle, TRUSTED, other).finding.problem == "checkpoint_differs"
    with pytest.raises(InvalidCheckpoint, match="says nothing of the log at that size"):
        verify_bundle(run_bundle, TRUSTED, LOG.checkpoint(8).sign(KEY))
    with pytest.raises(NotSigned):
        verify_bundle(run_bundle, TRUSTED, LOG.checkpoint(9).sign(OTHER_KEY))


def moved_up(members):
    """One event less, and those after it at one place before theirs."""
    first, _, *others = events_in(members)
    moved = [event._replace(leaf_index=event.leaf_index - 1).line() for event in others]
    return members | {names.EVENTS: b"".join((first.line(), *moved))}


def without_a_run(members):
    kept = [event for event in events_in(members) if b'"r:run-3"' not in event.body]
    return members | {names.EVENTS: b"".join(event.line() for event in kept)}


def with_another_head(members):
    line = members[names.HEADS].splitlines(keepends=True)[0]
    stream_id, seq, _ = line.decode().split()
    return members | {names.HEADS: members[names.HEADS].replace(line, head_line(stream_id, int(seq), bytes(32)))}


def with_one_more_head(members):
    return members | {names.HEADS: members[names.HEADS] + head_line("s:session-7", 4, bytes(32))}


def of_another_log(members):
    other = three_runs(writer="x").checkpoint(10).sign(KEY)
    return members | {names.EARLIER: other.note.encode()}


PERIOD_CASES = {
    "a body": (changed_line(names.EVENTS, 4, b"w", b"v"), {}, "link_broken"),
    "a missing event": (without_line(names.EVENTS, 4), {}, "sequence_gap"),
    "a missing event and places that are moved": (moved_up, {}, "sequence_gap"),
    "the last event": (without_line(names.EVENTS, SIZE - 11), {"event_count": SIZE - 11}, "count_differs"),
    "a run": (without_a_run, {}, "sequence_gap"),
    "a head": (with_another_head, {}, "link_broken"),
    "a missing head": (without_line(names.HEADS, 0), {}, "sequence_gap"),
    "another head": (with_one_more_head, {}, "count_differs"),
    "the log before": (of_another_log, {}, "proof_differs"),
    "a hash": (with_member(names.SUBTREES, lambda data: data[:-32] + bytes(32)), {}, "root_differs"),
}


def test_a_period_has_every_run_that_did_anything_in_it(period_bundle):
    found = verify_bundle(period_bundle, TRUSTED)
    assert found.is_right
    runs = {run.run_id: run for run in found.runs}
    assert [f"r:{run_id}" for run_id in runs] == list(dict.fromkeys(stream_id for stream_id, _ in LOG.events[10:]))
    assert [runs[run_id].outcome for run_id in sorted(runs)] == ["SUCCESS", "SUCCESS", "SUCCESS", None]
    assert [runs[run_id].begun_us is None for run_id in sorted(runs)] == [True, True, True, False]


@pytest.mark.parametrize("case", PERIOD_CASES)
def test_what_somebody_changed_or_left_out_of_a_period_is_found(case, period_bundle, tmp_path, keys_file):
    change, says, problem = PERIOD_CASES[case]
    path = write_members(tmp_path / "changed.bundle", change(members_of(period_bundle)), says=says)
    assert verify_bundle(path, TRUSTED).finding.problem == problem
    if case not in BEYOND_INDEPENDENT:
        assert independent.main(str(path), str(keys_file)) == 1


@pytest.mark.parametrize(("begin", "end"), [(0, SIZE), (0, 1), (SIZE - 1, SIZE), (7, 7), (16, 32)])
def test_a_period_of_any_size_is_right(begin, end, tmp_path, keys_file):
    path = write_period(tmp_path / "period.bundle", LOG, begin, end)
    assert verify_bundle(path, TRUSTED).finding is None
    assert independent.main(str(path), str(keys_file)) == 0


def test_both_verifiers_run_where_there_is_no_ledger(run_bundle, period_bundle, tmp_path, keys_file):
    """The small one as a script that sees nothing of ours; the other without database and without SQLAlchemy."""
    changed = write_members(tmp_path / "changed.bundle", with_content_changed(members_of(run_bundle)))
    broken = tmp_path / "broken.bundle"
    broken.write_bytes(run_bundle.read_bytes()[:-1])
    for path, code in ((run_bundle, 0), (period_bundle, 0), (changed, 1), (broken, 2)):
        script = [sys.executable, "-I", independent.__file__, str(path), str(keys_file)]
        assert subprocess.run(script, capture_output=True, timeout=30, check=False).returncode == code
    program = (
        "import sys; from pathlib import Path; from ledger.audit.bundle.verifying import verify_bundle;"
        f"assert verify_bundle(Path({str(run_bundle)!r})).is_right;"
        "print([name for name in sys.modules if name.startswith(('sqlalchemy', 'ledger.store.', 'sqlite3'))])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert said.stdout == "[]\n"


def test_the_independent_verifier_is_small_and_needs_cryptography_only():
    source = Path(independent.__file__).read_text()
    assert len(source.splitlines()) < 200
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {alias.name if isinstance(node, ast.Import) else node.module for node in nodes for alias in node.names}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names | {"cryptography"}


def test_every_content_that_an_event_can_name_is_looked_for():
    fields = {name for model in EVENT_TYPES.values() for name in model.model_fields if name.endswith("_digest")}
    assert {f"{name}_digest" for name in CONTENT_NAMES} == fields - {"policy_digest"}
    assert independent.CONTENTS == CONTENT_NAMES


@pytest.mark.parametrize("name", ["run-1", "session-1"])
def test_what_a_hostile_period_says_cannot_move_a_cursor(name, tmp_path):
    log = MemoryLog()
    log.append(ScriptedRun("run-1").start())
    stream_id = "r:run-1".replace(name, f"{name}\x1b[2J")
    body = log.events[0][1].body.replace(f'{name}"'.encode(), f'{name}\\u001b[2J"'.encode())
    line = log.events[0][1]._replace(body=body)
    log.events[0] = (stream_id, parse_event_line(chained([line], stream_id)[0], 1))
    path = write_period(tmp_path / "hostile.bundle", log, 0, 1)
    assert verify_bundle(path, TRUSTED).finding.problem == "stream_identity"


@pytest.mark.parametrize("bundle", ["run_bundle", "period_bundle"])
def test_each_event_has_a_proof_of_its_own(bundle, request):
    path = request.getfixturevalue(bundle)
    for number, event in enumerate(events_in(members_of(path)), 1):
        proof = verify_bundle(path, TRUSTED, prove=number).proof
        assert proof.index == event.leaf_index
        assert InclusionProof.parse(proof.text()).verify(event.link, TRUSTED) == LOG.checkpoint(SIZE)
    assert verify_bundle(path, TRUSTED, prove=number + 1).proof is None
