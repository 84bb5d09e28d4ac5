"""What a tool says when it cannot do what it was asked: a code, and one line that helps to ask better."""

from demo.errors import DemoError
from harness import FailureType


class ToolError(DemoError):
    """A tool was asked for something that it cannot do; the model may ask again, better."""

    code = "tool_error"
    failure = FailureType.BUSINESS_REJECTION
    """How a run's record classifies it."""


class InvalidArguments(ToolError):
    """The arguments do not match the tool's schema."""

    code = "invalid_arguments"
    failure = FailureType.INVALID_ARGUMENTS


class InvalidPattern(ToolError):
    """A pattern is not a regular expression that can be searched for in linear time."""

    code = "invalid_pattern"
    failure = FailureType.INVALID_ARGUMENTS


class FolderUnreadable(ToolError):
    """The folder that a tool reads is missing or closed to it."""

    code = "folder_unreadable"
    failure = FailureType.NOT_FOUND


class SnapshotUnreadable(ToolError):
    """The file that figures are read from is missing, or holds something else."""

    code = "snapshot_unreadable"
    failure = FailureType.NOT_FOUND


class CasesUnreadable(ToolError):
    """The ledger does not give the earlier cases."""

    code = "cases_unreadable"


class UnknownTool(ToolError):
    """There is no tool of that name."""

    code = "unknown_tool"


class ResultTooLarge(ToolError):
    """A result is larger than the bound for one tool result."""

    code = "result_too_large"


class PrometheusUnreachable(ToolError):
    """Nothing answers at the address of Prometheus, or nothing that speaks HTTP."""

    code = "prometheus_unreachable"
    failure = FailureType.TRANSPORT


class PrometheusTimedOut(ToolError):
    """Prometheus did not answer in time."""

    code = "prometheus_timed_out"
    failure = FailureType.TIMEOUT


class PrometheusRefused(ToolError):
    """Prometheus says what is wrong with the question, or that it cannot answer it."""

    code = "prometheus_refused"
    failure = FailureType.REJECTED_REQUEST


class PrometheusUnusable(ToolError):
    """An answer that is none of Prometheus's, or longer than is read of one."""

    code = "prometheus_unusable"
    failure = FailureType.MALFORMED_REPLY


class QueryRefused(ToolError):
    """A statement that is not let through to the database."""

    code = "query_refused"
    failure = FailureType.INVALID_ARGUMENTS


class QueryFailed(ToolError):
    """The database says what is wrong with a statement."""

    code = "query_failed"
    failure = FailureType.REJECTED_REQUEST


class QueryTimedOut(ToolError):
    """A statement took longer than it may, or waited for a lock."""

    code = "query_timed_out"
    failure = FailureType.TIMEOUT


class DatabaseUnreachable(ToolError):
    """The database cannot be connected to, or the connection broke."""

    code = "database_unreachable"
    failure = FailureType.TRANSPORT


def failure_type(error: BaseException) -> FailureType | None:
    """How a run's record classifies what a tool raised; None for anything else."""
    return error.failure if isinstance(error, ToolError) else None
