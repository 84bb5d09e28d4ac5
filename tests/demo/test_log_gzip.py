"""Rotated and gzip log files are searched as they unpack, within bounds that no file can talk its way out of."""

import gzip
import json
import os
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.bounds import LOG_FILE_BYTES_MAX, LOG_GZIP_TEXT_BYTES_MAX, TOOL_RESULT_BYTES_MAX
from demo.tools.log_text import LogText
from demo.tools.logs import search_logs

MIB = 1024 * 1024


def pack(folder, name, *texts, age_s=0):
    path = folder / name
    path.write_bytes(b"".join(gzip.compress(text) for text in texts))
    os.utime(path, (1_800_000_000 - age_s,) * 2)
    return path


def test_rotated_and_gzip_files_are_searched_with_the_numbers_of_their_lines(run, tmp_path):
    pack(tmp_path, "syslog.2.gz", b"fine\nhit in the oldest\n", age_s=200)
    (tmp_path / "syslog.1").write_text("hit in the older\n")
    os.utime(tmp_path / "syslog.1", (1_800_000_000 - 100,) * 2)
    (tmp_path / "syslog").write_text("hit in the newest\n")
    os.utime(tmp_path / "syslog", (1_800_000_000,) * 2)
    found = search_logs(run, "hit", folder=tmp_path)
    assert [(match["file"], match["line_no"]) for match in found["matches"]] == [
        ("syslog", 1),
        ("syslog.1", 1),
        ("syslog.2.gz", 2),
    ]
    assert (found["files_searched"], found["skipped"], found["limits_reached"]) == (3, [], [])


def test_all_members_of_a_gzip_file_are_one_text_and_padding_is_none(run, tmp_path):
    path = pack(tmp_path, "app.log.gz", b"first hit\nsecond ", b"", b"hit\n")
    path.write_bytes(path.read_bytes() + b"\0" * 512)
    found = search_logs(run, "hit", folder=tmp_path)
    assert [match["text"] for match in found["matches"]] == ["second hit", "first hit"]
    assert found["skipped"] == []


def test_a_gzip_file_is_known_by_its_bytes_and_not_by_its_name(run, tmp_path):
    pack(tmp_path, "packed.log", b"hit packed\n")
    (tmp_path / "plain.gz").write_text("hit plain\n")
    assert search_logs(run, "hit", folder=tmp_path)["match_count"] == 2


def test_a_bomb_unpacks_to_the_bound_and_never_into_memory(run, tmp_path):
    pack(tmp_path, "bomb.log.gz", b"hit\n" + b"x" * (64 * MIB))
    tracemalloc.start()
    found = search_logs(run, "hit", folder=tmp_path)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found["bytes_searched"] == LOG_GZIP_TEXT_BYTES_MAX
    assert found["limits_reached"] == ["gzip bytes"]
    assert peak_bytes < 2 * MIB


def test_a_file_that_unpacks_to_nothing_is_not_read_without_an_end(run, tmp_path):
    nothing = gzip.compress(b"")
    path = tmp_path / "nothing.log.gz"
    path.write_bytes(nothing * (LOG_FILE_BYTES_MAX // len(nothing) + 100))
    found = search_logs(run, "hit", folder=tmp_path)
    assert (found["bytes_searched"], found["limits_reached"]) == (0, ["gzip bytes"])


def test_the_name_in_a_header_may_be_endless(run, tmp_path):
    (tmp_path / "named.log.gz").write_bytes(b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"n" * (LOG_FILE_BYTES_MAX + 1))
    assert search_logs(run, "hit", folder=tmp_path)["limits_reached"] == ["gzip bytes"]


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_what_comes_before_the_damage_is_found_and_the_damage_is_named(run, tmp_path, damage):
    path = pack(tmp_path, "app.log.gz", b"hit\n", os.urandom(200_000).hex().encode())
    packed = path.read_bytes()
    middle = len(packed) // 2
    path.write_bytes(packed[:middle] if damage == "cut" else packed[:middle] + b"\xff" * 100 + packed[middle + 100 :])
    found = search_logs(run, "hit", folder=tmp_path)
    assert found["match_count"] == 1
    assert "gzip" in found["skipped"][0]["reason"]


def test_an_archive_is_binary_though_it_is_packed(run, tmp_path):
    pack(tmp_path, "logs.tar.gz", b"app.log\0\0\0hit\n")
    found = search_logs(run, "hit", folder=tmp_path)
    assert (found["match_count"], found["skipped"]) == (0, [{"file": "logs.tar.gz", "reason": "binary"}])


def test_a_link_to_a_gzip_file_outside_is_not_followed(run, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log.gz").symlink_to(pack(tmp_path, "secret.gz", b"hit\n"))
    found = search_logs(run, "hit", folder=tmp_path / "logs")
    assert (found["match_count"], found["skipped"][0]["reason"]) == (0, "symbolic link")


def test_a_result_from_many_gzip_files_keeps_its_bound(run, tmp_path):
    for number in range(30):
        pack(tmp_path, f"app.log.{number}.gz", ("\x1b\u202ehit" * 100 + "\n").encode() * 50)
    found = search_logs(run, "hit", limit=40, folder=tmp_path)
    assert len(json.dumps(found)) <= TOOL_RESULT_BYTES_MAX


@given(texts=st.lists(st.binary(max_size=300), max_size=4), room_bytes=st.integers(0, 1500))
def test_a_packed_text_reads_as_the_plain_one_does_from_its_beginning(tmp_path_factory, texts, room_bytes):
    folder = tmp_path_factory.mktemp("gzip")
    path = pack(folder, "a.gz", *texts)
    whole = b"".join(texts)
    with path.open("rb") as stream:
        text = LogText(stream, room_bytes)
        expected = whole[:room_bytes]
        assert list(text.lines()) == re.findall(rb"[^\n]*\n|[^\n]+", expected)
        assert text.size_bytes == len(expected)
        assert (text.limit_reached is not None) == (len(whole) > room_bytes)
