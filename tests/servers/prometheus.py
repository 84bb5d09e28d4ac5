"""A private Prometheus that scrapes one address, on a free port, with a folder that goes with it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.servers.postgres import free_port, wait_until_ready

TIMEOUT_S = 30.0
CONFIGURATION = """
global: {{scrape_interval: 100ms, scrape_timeout: 100ms, evaluation_interval: 100ms}}
rule_files: [rules.yml]
scrape_configs:
  - job_name: tachograph
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The values by labels, as soon as there are any."""
        until_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until_s:
            answer = httpx2.get(f"{self.url}/api/v1/query", params={"query": expression}).json()
            assert answer["status"] == "success", answer
            if found := answer["data"]["result"]:
                return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in found}
            time.sleep(0.1)
        raise AssertionError(f"{expression} has no value: {self.targets()}")

    def targets(self) -> list[dict[str, object]]:
        """What it says of what it scrapes."""
        active: list[dict[str, object]] = httpx2.get(f"{self.url}/api/v1/targets").json()["data"]["activeTargets"]
        return active


@contextmanager
def scraping(target: str, folder: Path, rules: str = "groups: []") -> Iterator[Prometheus]:
    """A Prometheus that scrapes `/metrics` of HOST:PORT, with these rules, until the block is left."""
    program = shutil.which("prometheus")
    assert program is not None, "Prometheus is missing: apt-get install prometheus"
    configuration = folder / "prometheus.yml"
    (folder / "rules.yml").write_text(rules)
    configuration.write_text(CONFIGURATION.format(target=target))
    address = f"127.0.0.1:{free_port()}"
    paths = (f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *paths, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        wait_until_ready(lambda: _is_ready(f"http://{address}"), process, folder / "log", TIMEOUT_S)
        yield Prometheus(f"http://{address}")
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def _is_ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/-/ready").status_code == 200
    except httpx2.TransportError:
        return False
