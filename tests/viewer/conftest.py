"""The example runs behind a real socket."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.viewer.example_runs import all_runs
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of
from viewer.reading import Reader


@pytest.fixture(scope="module")
def reader() -> FakeReader:
    return FakeReader(all_runs(), empty_sessions=["s-empty"])


@pytest.fixture(scope="module")
def source(reader) -> Reader | Path:
    """What is served; a module may say otherwise."""
    return reader


@pytest.fixture(scope="module")
def client(source) -> Iterator[httpx2.Client]:
    with client_of(source) as client:
        yield client
