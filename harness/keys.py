"""Keys under which a tool's invocation may be stored elsewhere (SPEC H8)."""

from __future__ import annotations

from harness.ids import check_id


class ToolCallKeyFactory:
    """Builds `{prefix}:{runId}:{toolCallId}` and never makes or rewrites the framework's tool-call id."""

    def __init__(self, prefix: str) -> None:
        self._prefix = check_id("prefix", prefix)

    def key(self, run_id: str, tool_call_id: str) -> str:
        """The key; `InvalidInput` for a segment that is blank, over-long or holds a separator or unsafe character."""
        return f"{self._prefix}:{check_id('run_id', run_id)}:{check_id('tool_call_id', tool_call_id)}"
