"""What a first visit to the page of a small run loads, and when a browser paints it, beside its plain HTML alone."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path
from statistics import median

from playwright.async_api import Browser, async_playwright

from harness import Harness
from ledger import Ledger
from tests.bench.figure import Figure, figure
from tests.bench.serving import Connection, Served, serving
from tests.bench.workload import run_of

EVENTS = 20
VISITS = 9
"""Each of a browser that remembers nothing."""
PAGE_AT_MOST_KB = 60.0
PAINT_AT_MOST_MS = 200.0
LOADED = re.compile(r'(?:href|src)="(/style\.css[^"]*|/static/js/[^"]+)"')
PAINTED = """() => new Promise((told) => new PerformanceObserver((list) => {
  for (const paint of list.getEntriesByName("first-contentful-paint")) told(paint.startTime);
}).observe({ type: "paint", buffered: true }))"""


async def measure(folder: Path) -> list[Figure]:
    """Served in a process of its own, as anybody would."""
    path = folder / "visit.db"
    async with await Ledger.open(path) as ledger:
        run_id = await run_of(Harness(ledger.journal), "bench", events=EVENTS)
    page = f"/trace?sessionId=bench&runId={run_id}"
    with serving(path) as served:
        connection = await Connection.open(served.port)
        html = await connection.get(page)
        parts = [await connection.get(part) for part in sorted(set(LOADED.findall(html.decode())))]
        await connection.close()
        painted_ms, plain_ms = await _painted(served, page)
    page_kb, all_kb = _compressed_kb([html]), _compressed_kb([html, *parts])
    name = f"page of a run of {EVENTS} events"
    return [
        figure(f"{name}, compressed", "kB", page_kb, "not compressed", len(html) / 1e3, at_most=PAGE_AT_MOST_KB),
        figure(f"{name} with style and scripts, compressed", "kB", all_kb, "the page alone", page_kb),
        figure(f"{name}, first paint", "ms", painted_ms, "/healthz", plain_ms, at_most=PAINT_AT_MOST_MS),
    ]


def _compressed_kb(parts: list[bytes]) -> float:
    return sum(len(gzip.compress(part)) for part in parts) / 1e3


async def _painted(served: Served, path: str) -> tuple[float, float]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        took = [
            (await _paint_ms(browser, served, path), await _paint_ms(browser, served, "/healthz"))
            for _ in range(VISITS)
        ]
        await browser.close()
    return median(page for page, _ in took), median(plain for _, plain in took)


async def _paint_ms(browser: Browser, served: Served, path: str) -> float:
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"http://127.0.0.1:{served.port}{path}")
    painted_ms = float(await page.evaluate(PAINTED))
    await context.close()
    return painted_ms
