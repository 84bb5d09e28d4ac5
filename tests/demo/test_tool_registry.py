"""What a model is offered, and how its arguments are checked."""

import inspect
import json
from datetime import datetime
from pathlib import Path
from typing import get_type_hints

import pytest

from demo.bounds import CHAT_LIMITS
from demo.tools import TOOLS, Sources, find_tool, tools_for
from demo.tools.errors import InvalidArguments, ResultTooLarge, UnknownTool
from harness import ManualClock, RunContext


@pytest.fixture
def sources(tmp_path):
    return Sources(tmp_path)


@pytest.fixture
def everything(tmp_path):
    """Sources with everything configured, some of it where nothing answers."""
    cases = Sources.as_recorded({"cases": "configured"}).cases
    return Sources(tmp_path, prometheus_url="http://127.0.0.1:9", sql_url="postgresql://u@127.0.0.1:9/x", cases=cases)


def test_every_tool_takes_the_run_first_and_only_reads():
    assert all(next(iter(get_type_hints(tool.function).values())) is RunContext for tool in TOOLS)
    assert {tool.effect for tool in TOOLS} == {"read"}


def test_every_tool_has_a_limit_of_its_own():
    assert {tool.name for tool in TOOLS} == set(CHAT_LIMITS.per_tool)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_describes_an_object_and_forbids_the_rest(tool):
    schema = tool.schema
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert all("description" in field for field in schema["properties"].values())
    json.dumps(schema)


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("host_metrics", {"sections": ["gpu"]}, "sections.0"),
        ("host_metrics", {"sections": []}, "sections"),
        ("top_processes", {"limit": "5"}, "limit"),
        ("top_processes", {"limit": True}, "limit"),
        ("top_processes", {"limit": 0}, "limit"),
        ("search_logs", {}, "pattern"),
        ("search_logs", {"pattern": ""}, "pattern"),
        ("search_logs", {"pattern": "x" * 301}, "pattern"),
        ("search_logs", {"pattern": "x", "folder": "/etc"}, "folder"),
        ("search_runbooks", {"query": "x", "run": "other"}, "run"),
        ("search_runbooks", {"not_an_object": [1]}, "query"),
        ("current_time", {"zone": "UTC"}, "zone"),
        ("query_prometheus", {"query": "up", "url": "http://elsewhere"}, "url"),
        ("query_prometheus", {"query": "x" * 1001}, "query"),
        ("query_prometheus_range", {"query": "up", "minutes": 10**9}, "minutes"),
        ("prometheus_alerts", {"state": "silenced"}, "state"),
        ("query_database", {"sql": "SELECT 1" + " " * 4000}, "sql"),
        ("query_database", {"sql": "SELECT 1", "url": "sqlite:////etc/passwd"}, "url"),
    ],
)
async def test_wrong_arguments_are_refused_and_named(run, everything, name, arguments, named):
    with pytest.raises(InvalidArguments, match=named):
        await called(find_tool(name, everything).bound(everything), run, **arguments)


def test_an_unknown_tool_is_refused_with_the_names_there_are(sources):
    with pytest.raises(UnknownTool, match="search_logs"):
        find_tool("rm_rf", sources)


def test_a_tool_is_there_only_where_what_it_needs_is_configured(sources, everything):
    names = {tool.name for tool in tools_for(sources)}
    assert names == {"host_metrics", "top_processes", "search_logs", "search_runbooks", "current_time"}
    assert tools_for(everything) == TOOLS
    with pytest.raises(UnknownTool):
        find_tool("query_prometheus", sources)


def test_a_run_is_executed_again_with_the_tools_that_it_was_offered(sources, everything):
    for used in (sources, everything):
        assert tools_for(Sources.as_recorded(used.labels)) == tools_for(used)


def test_sources_show_no_address_that_may_hold_a_password(everything):
    assert "127.0.0.1" not in repr(everything)


def test_a_result_above_its_bound_is_refused_not_cut(run, sources, monkeypatch):
    monkeypatch.setattr("demo.tools.registry.TOOL_RESULT_BYTES_MAX", 10)
    with pytest.raises(ResultTooLarge):
        find_tool("host_metrics", sources).bound(sources)(run, sections=["load"])


def test_the_time_is_told_in_utc_and_as_the_machine_shows_it(run, tmp_path):
    sources = Sources(tmp_path, clock=ManualClock(wall_us=1_800_000_000_000_000))
    told = find_tool("current_time", sources).bound(sources)(run)
    assert (told["utc"], told["unix_s"]) == ("2027-01-15T08:00:00Z", 1_800_000_000)
    assert datetime.fromisoformat(told["local"]) == datetime.fromisoformat(told["utc"])


async def called(function, *args, **kwargs):
    result = function(*args, **kwargs)
    return await result if inspect.isawaitable(result) else result


BUILT_IN = [tool for tool in TOOLS if tool.is_configured(Sources(Path()))]


@pytest.mark.parametrize("tool", BUILT_IN, ids=lambda tool: tool.name)
def test_every_result_is_plain_json(run, sources, tool):
    needed = {"search_logs": {"pattern": "x"}, "search_runbooks": {"query": "disk"}}.get(tool.name, {})
    result = tool.bound(sources)(run, **needed)
    assert json.loads(json.dumps(result)) == result
