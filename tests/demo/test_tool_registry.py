"""What a model is offered, and how its arguments are checked."""

import json
from typing import get_type_hints

import pytest

from demo.bounds import CHAT_LIMITS
from demo.tools import TOOLS, Sources, find_tool
from demo.tools.errors import InvalidArguments, ResultTooLarge, UnknownTool
from harness import RunContext


@pytest.fixture
def sources(tmp_path):
    return Sources(tmp_path)


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
    ],
)
def test_wrong_arguments_are_refused_and_named(run, sources, name, arguments, named):
    with pytest.raises(InvalidArguments, match=named):
        find_tool(name).bound(sources)(run, **arguments)


def test_an_unknown_tool_is_refused_with_the_names_there_are():
    with pytest.raises(UnknownTool, match="search_logs"):
        find_tool("rm_rf")


def test_a_result_above_its_bound_is_refused_not_cut(run, sources, monkeypatch):
    monkeypatch.setattr("demo.tools.registry.TOOL_RESULT_BYTES_MAX", 10)
    with pytest.raises(ResultTooLarge):
        find_tool("host_metrics").bound(sources)(run, sections=["load"])


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_result_is_plain_json(run, sources, tool):
    needed = {"search_logs": {"pattern": "x"}, "search_runbooks": {"query": "disk"}}.get(tool.name, {})
    result = tool.bound(sources)(run, **needed)
    assert json.loads(json.dumps(result)) == result
