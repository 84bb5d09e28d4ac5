"""A bundle that somebody made to do harm is refused, within limits, and one that was damaged is never read as whole."""

import contextlib
import io
import zipfile
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.audit.bundle import independent, limits, zip_format
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.errors import BundleTooLarge, BundleWrong, InvalidBundle
from ledger.audit.bundle.manifest import MANIFEST, parse_manifest
from ledger.audit.bundle.reading import Archive
from ledger.audit.bundle.verifying import verify_bundle
from ledger.audit.bundle.writing import ArchiveWriter
from ledger.audit.bundle.zip_format import DEFLATED, STORED, Entry
from tests.audit.bundles import KEY, LOG, SIZE, members_of, write_members, write_period, write_run
from tests.examples import examples

TRUSTED = [KEY.verifier]
DIGEST = "0" * 64


def deflated(data):
    packing = zlib.compressobj(9, zlib.DEFLATED, zip_format.RAW_DEFLATE)
    return packing.compress(data) + packing.flush()


def entry(name="events.txt", data=b"x", method=STORED, **fields):
    packed = deflated(data) if method == DEFLATED else data
    return Entry(name, method, zlib.crc32(data), len(packed), len(data), 0)._replace(**fields), packed


def zip_of(*entries, count=None, between=b"", comment=b""):
    """A zip as the format has it, but for what is asked for."""
    file, placed = io.BytesIO(), []
    for one, packed in entries:
        placed.append(one._replace(offset=file.tell()))
        file.write(placed[-1].local_header() + packed)
    file.write(between)
    directory = b"".join(one.central_header() for one in placed)
    end = zip_format.end_record(len(placed) if count is None else count, len(directory), file.tell())
    return file.getvalue() + directory + end + comment


def made_by(change):
    """A zip of another program, which may have all that the format of zips has."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        change(archive)
    return file.getvalue()


def link_to_passwd(archive):
    info = zipfile.ZipInfo("events.txt")
    info.external_attr = 0o120777 << 16
    archive.writestr(info, "/etc/passwd")


def encrypted(data):
    return data.replace(b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\1\0").replace(
        b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0"
    )


GOOD = zip_of(entry())
BOMB = b"\0" * (limits.RATIO_FREE_BYTES * 3)

HOSTILE = {
    "nothing": b"",
    "no zip": b"PK" * 500,
    "no end": GOOD[:-1],
    "something before": b"#!/bin/sh\n" + GOOD,
    "something after": GOOD + b"x",
    "a comment": GOOD[:-2] + b"\1\0x",
    "something between": zip_of(entry(), between=b"hidden"),
    "a count that is too high": zip_of(entry(), count=2),
    "a huge count": zip_of(entry(), count=65_535),
    "no entry of a member": zip_of(entry(), count=0),
    "two members of one name": zip_of(entry(), entry()),
    "a name in capitals": zip_of(entry("Events.txt")),
    "a name that another program takes for the same": zip_of(entry("events.txt "), entry()),
    "a path that leads out": zip_of(entry("../events.txt")),
    "an absolute path": zip_of(entry("/etc/passwd")),
    "a drive": zip_of(entry("c:events.txt")),
    "a backslash": zip_of(entry("content\\" + DIGEST)),
    "a folder": zip_of(entry("content/", b"")),
    "a content that is none": zip_of(entry("content/" + "0" * 63)),
    "an empty name": zip_of(entry("", b"")),
    "another packing": GOOD.replace(b"\x14\0\0\0\0\0", b"\x14\0\0\0\x0c\0"),
    "encryption": encrypted(GOOD),
    "a link": made_by(link_to_passwd),
    "a time": made_by(lambda archive: archive.writestr("events.txt", "x")),
    "a bomb": zip_of(entry(data=BOMB, method=DEFLATED)),
    "a bomb of many": zip_of(
        *(entry(f"content/{n:064x}", b"", size_bytes=(1 << 32) - 1, packed_bytes=1 << 25) for n in range(3))
    ),
    "more than is said": zip_of(entry(data=b"x" * 10, size_bytes=9, method=DEFLATED)),
    "less than is said": zip_of(entry(data=b"x" * 10, size_bytes=11, method=DEFLATED)),
    "a stored member of two sizes": zip_of(entry(data=b"x" * 10, size_bytes=11)),
    "more packed than is needed": zip_of((entry(method=DEFLATED, packed_bytes=5)[0], deflated(b"x") + b"xx")),
    "a member that goes on": zip_of(entry(packed_bytes=500, size_bytes=500)),
    "the large form": GOOD[:-22] + b"PK\6\7" + bytes(16) + GOOD[-22:],
    "many disks": GOOD[:-18] + b"\1\0" + GOOD[-16:],
    "an extra field": GOOD.replace(b"\x0a\0\0\0events", b"\x0a\0\4\0events"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_zip_that_is_not_written_as_bundles_are_is_refused(kind, tmp_path):
    path = tmp_path / "hostile.bundle"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises((InvalidBundle, BundleWrong)):
        members_of(path)
    with pytest.raises(InvalidBundle):
        verify_bundle(path)


def test_headers_that_differ_are_two_answers_to_one_question_and_refused(tmp_path):
    for changed in (
        GOOD.replace(b"events", b"evemts", 1),
        GOOD[:14] + b"\0" + GOOD[15:],
        GOOD[:22] + b"\2" + GOOD[23:],
    ):
        path = tmp_path / "differs.bundle"
        path.write_bytes(changed)
        with pytest.raises(InvalidBundle, match="two headers"):
            members_of(path)


def test_a_zip_within_is_no_member_and_never_opened(tmp_path):
    members = members_of(write_run(tmp_path / "run", LOG))
    with pytest.raises(InvalidBundle, match=r"members\.\d+\.name"):
        verify_bundle(write_members(tmp_path / "changed", members | {"nested.zip": GOOD}))


def test_what_looks_like_a_bomb_is_stored_as_it_is_and_read_back(tmp_path):
    with (tmp_path / "big.zip").open("xb+") as file:
        archive = ArchiveWriter(file)
        archive.add("rows.jsonl", BOMB)
        archive.add("heads.txt", b"short")
        archive.end()
    with (tmp_path / "big.zip").open("rb") as file:
        read = Archive(file)
        assert (read.entries["rows.jsonl"].method, read.read("rows.jsonl", len(BOMB))) == (STORED, BOMB)
        assert zipfile.ZipFile(file).testzip() is None


def test_a_bundle_that_would_hold_too_much_is_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_MEMBERS", 3)
    with pytest.raises(BundleTooLarge):
        write_run(tmp_path / "run.bundle", LOG)
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", 100)
    with pytest.raises(BundleTooLarge):
        write_run(tmp_path / "again.bundle", LOG)


MANIFESTS = {
    "nothing": b"",
    "not a number": b'{"format":"tachograph-bundle","version":NaN}',
    "a list": b"[]",
    "deep": b"[" * 60_000,
    "a huge number": b'{"format":"tachograph-bundle","version":1' + b"0" * 5_000 + b"}",
    "another format": b'{"format":"x","version":1}',
    "a later version": b'{"format":"tachograph-bundle","version":2}',
    "too large": b'{"x":"' + b" " * limits.MAX_MANIFEST_BYTES + b'"}',
    "no kind": b'{"format":"tachograph-bundle","version":1}',
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_that_is_none_is_refused(kind, tmp_path):
    with (tmp_path / "bundle").open("xb+") as file:
        archive = ArchiveWriter(file)
        archive.add(MANIFEST, MANIFESTS[kind])
        archive.end()
    with pytest.raises(InvalidBundle):
        verify_bundle(tmp_path / "bundle")
    assert independent.main(str(tmp_path / "bundle")) in (1, 2)


@pytest.mark.parametrize("change", [b' "version"', b'"version":1.0,"x"', b'"Version":1,"version"'])
def test_a_manifest_is_written_in_one_way_only(change, tmp_path):
    data = members_of(write_run(tmp_path / "run", LOG))[MANIFEST]
    with pytest.raises(InvalidBundle):
        parse_manifest(data.replace(b'"version"', change))


LINES = {
    "a line without end": b"x" * (limits.MAX_EVENT_LINE_BYTES + 1),
    "a last line that does not end": b"0 1 1 " + b"0" * 64 + b" {}",
    "a number with a sign": b"+0 1 1 " + b"0" * 64 + b" {}\n",
    "a huge number": b"1" * 5_000 + b" 1 1 " + b"0" * 64 + b" {}\n",
    "a body that is deep": b"0 1 1 " + b"0" * 64 + b' {"a":' + b"[" * 9_000 + b"\n",
    "a body of other letters": b"0 1 1 " + b"0" * 64 + ' {"a":"é"}\n'.encode(),
    "two bodies": b"0 1 1 " + b"0" * 64 + b" {}\n{}\n",
}


@pytest.mark.parametrize("kind", LINES)
def test_a_line_that_is_no_event_is_refused_before_it_is_believed(kind, tmp_path):
    members = members_of(write_run(tmp_path / "run", LOG))
    path = write_members(tmp_path / "changed", members | {names.EVENTS: LINES[kind]}, says={"event_count": 1})
    with contextlib.suppress(InvalidBundle):
        assert verify_bundle(path).finding is not None
    assert independent.main(str(path)) in (1, 2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A bundle of each kind, and what is read from it."""
    folder = tmp_path_factory.mktemp("whole")
    paths = [
        write_run(folder / "run", LOG, tree=LOG.signed_tree(SIZE, 9)),
        write_period(folder / "period", LOG, 10, SIZE),
    ]
    (folder / "keys").write_text(f"{KEY.verifier}\n")
    return folder, [(path.read_bytes(), members_of(path)) for path in paths]


@settings(examples(250), suppress_health_check=list(HealthCheck), derandomize=True)
@given(number=st.integers(0, 1), place=st.integers(0), value=st.integers(1, 255))
def test_any_byte_that_was_changed_is_found_or_changes_nothing_that_is_read(whole, number, place, value):
    folder, bundles = whole
    data, members = bundles[number]
    changed = bytearray(data)
    changed[place % len(data)] ^= value
    path = folder / "changed"
    path.write_bytes(changed)
    try:
        is_right = verify_bundle(path, TRUSTED).is_right
    except InvalidBundle:
        is_right = False
    assert not is_right or members_of(path) == members
    if independent.main(str(path), str(folder / "keys")) == 0:
        with zipfile.ZipFile(path) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == members
