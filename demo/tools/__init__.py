"""What the demo's agent can do: look at this machine, its logs and the runbooks, and change nothing."""

from demo.tools.errors import ToolError
from demo.tools.registry import READ_ONLY, TOOLS, Tool, find_tool, tools_for
from demo.tools.sources import Sources

__all__ = ["READ_ONLY", "TOOLS", "Sources", "Tool", "ToolError", "find_tool", "tools_for"]
