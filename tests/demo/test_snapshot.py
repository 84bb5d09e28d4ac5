"""Figures from a file instead of from this machine."""

import json

import pytest

from demo.bounds import SNAPSHOT_BYTES_MAX
from demo.tools import Sources, find_tool
from demo.tools.errors import SnapshotUnreadable

HOST = {
    "cpu": {"cpu_count": 4, "used_percent": 12.5, "iowait_percent": 0.4, "watched_s": 1.0},
    "load": {"load_1m": 0.5, "load_5m": 0.4, "load_15m": 0.3, "per_cpu_1m": 0.13},
}


def process(pid, cpu_percent, memory_bytes):
    return {
        "pid": pid,
        "name": f"p{pid}",
        "user": None,
        "cpu_percent": cpu_percent,
        "memory_bytes": memory_bytes,
        "memory_percent": 1.0,
    }


@pytest.fixture
def call(run, tmp_path):
    """Call a tool over a snapshot that holds this text."""

    def call(tool, text, **arguments):
        path = tmp_path / "snapshot.json"
        path.write_text(text)
        sources = Sources(tmp_path, metrics_snapshot=path)
        return find_tool(tool, sources).bound(sources)(run, **arguments)

    return call


def test_a_snapshot_gives_the_sections_that_are_asked_for(call):
    snapshot = json.dumps({"host": HOST, "processes": []})
    assert call("host_metrics", snapshot, sections=["cpu"]) == {"cpu": HOST["cpu"]}
    assert call("host_metrics", snapshot) == {**HOST, "disks_skipped": []}


def test_processes_of_a_snapshot_are_ranked_as_live_ones_are(call):
    snapshot = json.dumps({"host": {}, "processes": [process(1, 5.0, 10), process(2, 1.0, 20), process(3, 9.0, 5)]})
    by_cpu = call("top_processes", snapshot, sort_by="cpu", limit=2)
    assert [row["pid"] for row in by_cpu["processes"]] == [3, 1]
    assert by_cpu["process_count"] == 3
    assert [row["pid"] for row in call("top_processes", snapshot)["processes"]] == [2, 1, 3]


@pytest.mark.parametrize("text", ["", "[]", '{"host": {}}', '{"host": {"cpu": 1}, "processes": []}', " " * (2**20 + 1)])
def test_a_file_that_is_no_snapshot_is_a_typed_error(call, text):
    assert len(text) in range(40) or len(text) > SNAPSHOT_BYTES_MAX
    with pytest.raises(SnapshotUnreadable):
        call("host_metrics", text)


def test_a_snapshot_that_is_missing_is_a_typed_error(run, tmp_path):
    sources = Sources(tmp_path, metrics_snapshot=tmp_path / "none")
    with pytest.raises(SnapshotUnreadable, match="cannot be read"):
        find_tool("top_processes", sources).bound(sources)(run)
