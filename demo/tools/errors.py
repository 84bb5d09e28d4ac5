"""What a tool says when it cannot do what it was asked: a code, and one line that helps to ask better."""

from demo.errors import DemoError
from harness import FailureType


class ToolError(DemoError):
    """A tool was asked for something that it cannot do; the model may ask again, better."""

    code = "tool_error"


class InvalidArguments(ToolError):
    """The arguments do not match the tool's schema."""

    code = "invalid_arguments"


class InvalidPattern(ToolError):
    """A pattern is not a regular expression that can be searched for in linear time."""

    code = "invalid_pattern"


class FolderUnreadable(ToolError):
    """The folder that a tool reads is missing or closed to it."""

    code = "folder_unreadable"


class SnapshotUnreadable(ToolError):
    """The file that figures are read from is missing, or holds something else."""

    code = "snapshot_unreadable"


class UnknownTool(ToolError):
    """There is no tool of that name."""

    code = "unknown_tool"


class ResultTooLarge(ToolError):
    """A result is larger than the bound for one tool result."""

    code = "result_too_large"


def failure_type(error: BaseException) -> FailureType | None:
    """How a run's record classifies what a tool raised; None for anything else."""
    if isinstance(error, InvalidArguments | InvalidPattern):
        return FailureType.INVALID_ARGUMENTS
    if isinstance(error, FolderUnreadable | SnapshotUnreadable):
        return FailureType.NOT_FOUND
    return FailureType.BUSINESS_REJECTION if isinstance(error, ToolError) else None
