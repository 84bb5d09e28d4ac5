"""Log search on real files: bounds, order, what is skipped, and no way out of the folder."""

import contextlib
import json
import os
import time

import pytest

from demo.bounds import (
    CHAT_LIMITS,
    LOG_FILE_BYTES_MAX,
    LOG_LINE_CHARS_SHOWN,
    LOG_MATCHES_SHOWN_MAX,
    TOOL_RESULT_BYTES_MAX,
)
from demo.tools.errors import FolderUnreadable, InvalidPattern
from demo.tools.log_files import LogFile, find_log_files, open_log_file
from demo.tools.logs import search_logs
from harness import CancelReason, Harness, RunEnded


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


def write(folder, name, text, *, age_s=0):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def reasons(found):
    return {skipped["file"]: skipped["reason"] for skipped in found["skipped"]}


def test_lines_are_found_in_any_case_with_file_and_number(run, logs):
    write(logs, "app.log", "fine\nERROR: disk\nfine\n")
    found = search_logs(run, "error", folder=logs)
    assert found["matches"] == [{"file": "app.log", "line_no": 2, "text": "ERROR: disk"}]
    assert (found["files_searched"], found["lines_searched"], found["bytes_searched"]) == (1, 3, 22)


def test_the_newest_file_and_in_it_the_newest_line_come_first(run, logs):
    write(logs, "old.log", "hit old 1\nhit old 2\n", age_s=3600)
    write(logs, "new.log", "hit new 1\nhit new 2\n")
    texts = [match["text"] for match in search_logs(run, "hit", folder=logs)["matches"]]
    assert texts == ["hit new 2", "hit new 1", "hit old 2", "hit old 1"]


def test_all_matches_are_counted_though_few_are_shown(run, logs):
    write(logs, "app.log", "hit\n" * 500)
    found = search_logs(run, "hit", limit=3, folder=logs)
    assert (found["match_count"], len(found["matches"])) == (500, 3)
    assert [match["line_no"] for match in found["matches"]] == [500, 499, 498]
    assert found["matches_by_file"] == [{"file": "app.log", "match_count": 500}]


def test_plain_text_is_taken_as_it_stands(run, logs):
    write(logs, "app.log", "a+b\naab\n")
    assert search_logs(run, "a+b", folder=logs)["match_count"] == 1
    assert search_logs(run, "a+b", regex=True, folder=logs)["match_count"] == 1
    assert search_logs(run, "a+b", folder=logs)["matches"][0]["text"] == "a+b"


def test_an_invalid_regular_expression_is_a_typed_error_that_says_what_to_do(run, logs):
    with pytest.raises(InvalidPattern, match="set regex to false") as caught:
        search_logs(run, "(unclosed", regex=True, folder=logs)
    assert caught.value.code == "invalid_pattern"


def test_a_pattern_that_would_hang_a_backtracking_matcher_takes_no_time(run, logs):
    write(logs, "app.log", "a" * 4000 + "!\n")
    began = time.perf_counter()
    assert search_logs(run, "(a+)+$", regex=True, folder=logs)["match_count"] == 0
    assert time.perf_counter() - began < 1


def test_a_huge_file_is_read_from_its_end(run, logs):
    line = b"x" * 99 + b"\n"
    write(logs, "big.log", b"first hit\n" + line * (LOG_FILE_BYTES_MAX // 100 + 10) + b"last hit\n")
    found = search_logs(run, "hit", folder=logs)
    assert found["matches"] == [{"file": "big.log", "line_no": None, "text": "last hit"}]
    assert found["bytes_searched"] <= LOG_FILE_BYTES_MAX
    assert found["limits_reached"] == ["file bytes"]


def test_one_line_of_five_megabytes_is_cut_and_counted_once(run, logs):
    write(logs, "app.log", b"hit" + b"x" * 5_000_000 + b"hit\nnext hit\n")
    found = search_logs(run, "hit", folder=logs)
    assert [len(match["text"]) for match in found["matches"]] == [8, LOG_LINE_CHARS_SHOWN]
    assert found["match_count"] == 2


def test_the_result_stays_within_its_bound_whatever_the_lines_hold(run, logs):
    write(logs, "app.log", ("\x1b\x07\u202ehit" * 100 + "\n") * 200)
    found = search_logs(run, "hit", limit=LOG_MATCHES_SHOWN_MAX, folder=logs)
    assert len(json.dumps(found)) <= TOOL_RESULT_BYTES_MAX
    assert "shown bytes" in found["limits_reached"]


def test_what_is_not_searched_is_said(run, logs, tmp_path):
    write(logs, "wtmp", b"\0\1hit")
    write(logs, "old.log.xz", "hit")
    outside = write(tmp_path, "secret", "hit")
    (logs / "link.log").symlink_to(outside)
    (logs / "linked").symlink_to(tmp_path)
    os.mkfifo(logs / "pipe")
    found = search_logs(run, "hit", folder=logs)
    assert found["match_count"] == 0
    assert reasons(found) == {
        "wtmp": "binary",
        "old.log.xz": "packed, but not with gzip",
        "link.log": "symbolic link",
        "linked": "symbolic link",
        "pipe": "not a regular file",
    }


def test_no_pattern_of_names_leads_out_of_the_folder(run, logs, tmp_path):
    write(tmp_path, "secret", "hit")
    write(logs, "app.log", "fine\n")
    for name_pattern in ("../*", "/*", "../secret", str(tmp_path / "secret")):
        assert search_logs(run, "hit", name_pattern=name_pattern, folder=logs)["match_count"] == 0


def test_a_file_that_has_become_a_link_since_it_was_found_is_not_followed(logs, tmp_path):
    secret = write(tmp_path, "secret", "hit")
    (logs / "sub").mkdir()
    (logs / "sub" / "app.log").symlink_to(secret)
    with pytest.raises(OSError, match="symbolic link"), open_log_file(logs, LogFile(("sub", "app.log"), 3, 0)):
        pass


def test_a_folder_that_has_become_a_link_is_not_entered(logs, tmp_path):
    write(tmp_path, "secret", "hit")
    (logs / "sub").symlink_to(tmp_path)
    with pytest.raises(OSError), open_log_file(logs, LogFile(("sub", "secret"), 3, 0)):  # noqa: PT011 -- ELOOP or ENOTDIR
        pass


def test_only_files_whose_name_matches_are_searched(run, logs):
    write(logs, "nginx/error.log", "hit\n")
    write(logs, "nginx/access.log", "hit\n")
    write(logs, "syslog", "hit\n")
    found = search_logs(run, "hit", name_pattern="*/error.log", folder=logs)
    assert found["matches_by_file"] == [{"file": "nginx/error.log", "match_count": 1}]


def test_a_name_that_is_no_valid_text_is_shown_with_a_replacement(run, logs):
    write(logs, os.fsdecode(b"bad\xff.log"), "hit\n")
    found = search_logs(run, "hit", folder=logs)
    assert found["matches"][0]["file"] == "bad\ufffd.log"
    json.dumps(found).encode()


def test_bytes_that_are_no_text_are_replaced_not_fatal(run, logs):
    write(logs, "app.log", b"hit \xff\xfe\n")
    assert search_logs(run, "hit", folder=logs)["matches"][0]["text"] == "hit \ufffd\ufffd"


async def test_a_search_stops_when_its_run_has_ended(journal, logs):  # SPEC H3
    write(logs, "app.log", "hit\n")
    with contextlib.suppress(RunEnded):
        async with Harness(journal).run(session_id="s-1", limits=CHAT_LIMITS, timeout_s=60) as run:
            run.cancellation.signal(CancelReason.USER_REQUESTED)
            found = search_logs(run, "hit", folder=logs)
    assert (found["files_searched"], found["limits_reached"]) == (0, ["run ended"])


def test_a_missing_folder_is_a_typed_error(run, tmp_path):
    with pytest.raises(FolderUnreadable):
        search_logs(run, "hit", folder=tmp_path / "none")


def test_a_folder_with_too_many_entries_says_so(logs, monkeypatch):
    monkeypatch.setattr("demo.tools.log_files.LOG_ENTRIES_MAX", 3)
    for number in range(5):
        write(logs, f"{number}.log", "x")
    found = find_log_files(logs)
    assert (len(found.files), found.complete) == (3, False)


def test_an_unreadable_file_is_skipped_and_named(run, logs, monkeypatch):
    write(logs, "closed.log", "hit\n")
    write(logs, "open.log", "hit\n")
    real = os.open

    def refuse(path, *args, **kwargs):
        if path == "closed.log":
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **kwargs)

    # The tests may run as root, who may read everything.
    monkeypatch.setattr("demo.tools.log_files.os.open", refuse)
    found = search_logs(run, "hit", folder=logs)
    assert reasons(found) == {"closed.log": "Permission denied"}
    assert found["match_count"] == 1
