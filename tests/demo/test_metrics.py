"""Live figures of the machine that the tests run on."""

import json
import os
import subprocess
import sys
from pathlib import Path

from demo.bounds import PROCESSES_SHOWN_MAX
from demo.tools.figures import SECTIONS
from demo.tools.metrics import host_metrics, top_processes


def test_all_sections_of_this_machine_are_plausible(run):
    found = host_metrics(run)
    assert set(found) == {*SECTIONS, "disks_skipped"}
    assert found["cpu"]["cpu_count"] >= 1
    assert 0 <= found["cpu"]["used_percent"] <= 100
    assert 0 < found["memory"]["available_bytes"] < found["memory"]["total_bytes"]
    assert found["load"]["load_1m"] >= 0


def test_the_disk_of_the_root_folder_is_measured(run):
    disks = {disk["mount"]: disk for disk in host_metrics(run, ["disks"])["disks"]}
    root, stat = disks["/"], os.statvfs("/")
    assert root["total_bytes"] == stat.f_blocks * stat.f_frsize
    assert 0 <= root["used_percent"] <= 100


def test_no_file_system_is_listed_twice(run):
    mounts = [disk["mount"] for disk in host_metrics(run, ["disks"])["disks"]]
    devices = [Path(mount).stat().st_dev for mount in mounts]
    assert len(set(devices)) == len(devices)


def test_only_the_sections_asked_for_are_measured(run):
    assert set(host_metrics(run, ["memory", "load"])) == {"memory", "load"}


def test_processes_are_ranked_and_bounded(run):
    found = top_processes(run, "memory", limit=1000)
    sizes = [row["memory_bytes"] for row in found["processes"]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) <= PROCESSES_SHOWN_MAX <= found["process_count"] or len(sizes) == found["process_count"]


def test_a_process_is_found_busy_while_it_is_busy(run):
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        found = top_processes(run, "cpu", limit=PROCESSES_SHOWN_MAX)
    finally:
        busy.kill()
        busy.wait()
    assert next(row["cpu_percent"] for row in found["processes"] if row["pid"] == busy.pid) > 10


def test_command_lines_which_may_hold_secrets_are_left_out(run):
    assert "cmdline" not in json.dumps(top_processes(run))
