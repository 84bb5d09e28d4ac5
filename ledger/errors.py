"""What the ledger raises: one base, facts as attributes, a `code` that never changes."""

from __future__ import annotations

from typing import Protocol

from harness.errors import IllegalEvent


class LedgerError(Exception):
    """Base of every error that the ledger raises on purpose."""

    code = "ledger_error"


class RunNotFound(LedgerError, LookupError):
    """No such run in that session; a run of another session looks exactly the same (SPEC R4)."""

    code = "run_not_found"

    def __init__(self, session_id: str, run_id: str) -> None:
        self.session_id = session_id
        self.run_id = run_id
        super().__init__(f"there is no run {run_id} in session {session_id}")


class SessionNotFound(LedgerError, LookupError):
    """No such session."""

    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"there is no session {session_id}")


class ContentNotFound(LedgerError, LookupError):
    """No content has that digest, or not in that run."""

    code = "content_not_found"

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__(f"there is no content {digest}")


class InvalidCursor(LedgerError, ValueError):
    """A page was asked for with a cursor that no earlier page gave."""

    code = "invalid_cursor"

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        super().__init__("the cursor is not one that an earlier page gave")


class AheadOfLog(LedgerError, ValueError):
    """A follower begins beyond the end of the log: it has seen another log, or one that was restored to less."""

    code = "ahead_of_log"

    def __init__(self, after: int, last: int) -> None:
        self.after = after
        self.last = last
        super().__init__(f"the log ends at {last}, and was to be followed after {after}")


class UnsupportedUrl(LedgerError, ValueError):
    """The ledger's address names neither an SQLite file nor a PostgreSQL database."""

    code = "unsupported_url"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the ledger's address {problem}; give sqlite:///FILE, a path, or postgresql://USER@HOST/DATABASE"
        )


class Place(Protocol):
    """Where a ledger is: a file's path, or a database's address without its password."""

    def __str__(self) -> str: ...


class LedgerFileError(LedgerError):
    """Base of what can be wrong with a ledger's file or database; nothing was changed."""

    code = "ledger_file_error"

    def __init__(self, place: Place, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(f"{place} {problem}")


class LedgerMissing(LedgerFileError):
    """There is none."""

    code = "ledger_missing"

    def __init__(self, place: Place) -> None:
        super().__init__(place, "does not exist")


class NotALedger(LedgerFileError):
    """It is something else."""

    code = "not_a_ledger"


class LedgerUnreadable(LedgerFileError):
    """It cannot be read, or cannot be written where that was asked for."""

    code = "ledger_unreadable"


class LedgerTooNew(LedgerFileError):
    """A newer version of this program wrote the ledger."""

    code = "ledger_too_new"

    def __init__(self, place: Place, found: str) -> None:
        self.found = found
        super().__init__(place, f"was written by a newer version of this program (it is at {found})")


class LedgerNotMigrated(LedgerFileError):
    """The ledger's schema is older than this program's; `tachograph migrate` brings it up to date."""

    code = "ledger_not_migrated"

    def __init__(self, place: Place, found: str, needed: str) -> None:
        self.found = found
        self.needed = needed
        super().__init__(place, f"has schema {found}, and {needed} is needed: run `tachograph migrate`")


class LedgerNotLive(LedgerFileError):
    """It can be read, but not written: a backup, moved, or restored from a dump; two copies must not both go on."""

    code = "ledger_not_live"

    def __init__(self, place: Place, standing: str) -> None:
        self.standing = standing
        advice = {
            "backup": "is a backup: `tachograph restore` makes a ledger of it",
            "moved": "was moved elsewhere, and goes on there",
            "restored": "was restored from a dump of another database: `tachograph adopt` lets it go on here",
        }
        super().__init__(place, advice.get(standing, f"is {standing}, and cannot be written"))


class LedgerNotRestored(LedgerFileError):
    """Nothing says that it was restored from a dump, so that there is nothing to adopt."""

    code = "ledger_not_restored"

    def __init__(self, place: Place) -> None:
        super().__init__(place, "is where it was made, and goes on as it is")


class LedgerInUse(LedgerFileError):
    """A process has it open, and must not while this is done."""

    code = "ledger_in_use"

    def __init__(self, place: Place) -> None:
        super().__init__(place, "is open in a process: close it first")


class LedgerDamaged(LedgerFileError):
    """It is not what its events say."""

    code = "ledger_damaged"

    def __init__(self, place: Place, first: str, finding_count: int) -> None:
        self.first = first
        self.finding_count = finding_count
        more = f", and {finding_count - 1:,} more" if finding_count > 1 else ""
        super().__init__(place, f"is not what its events say: {first}{more}")


class InvalidErasureList(LedgerFileError):
    """A file is no list of erasures, or that of another ledger."""

    code = "invalid_erasure_list"


class NetworkFileSystem(LedgerFileError):
    """SQLite's locks cannot be relied upon there."""

    code = "network_file_system"

    def __init__(self, place: Place, file_system: str) -> None:
        self.file_system = file_system
        super().__init__(place, f"is on a network file system ({file_system}), where its locks cannot be relied upon")


class TooLarge(LedgerError, ValueError):
    """An event's body or a content is larger than the ledger stores; nothing was written."""

    code = "too_large"

    def __init__(self, what: str, *, size_bytes: int, limit_bytes: int) -> None:
        self.what = what
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(f"{what} has {size_bytes} bytes, and the limit is {limit_bytes}")


class MisplacedEvent(LedgerError, ValueError):
    """An event that does not belong to the run it was submitted for; nothing was written (SPEC E4)."""

    code = "misplaced_event"

    def __init__(self, event_type: str, problem: str) -> None:
        self.event_type = event_type
        self.problem = problem
        super().__init__(f"{event_type} {problem}")


class RunIdTaken(LedgerError, IllegalEvent):
    """A run of that id exists already; whose it is, is not said."""

    code = "run_id_taken"

    def __init__(self, run_id: str) -> None:
        IllegalEvent.__init__(self, "run.started", f"the run id {run_id} is taken")
        self.run_id = run_id


class EventIdReused(LedgerError, IllegalEvent):
    """An event id is in the stream already, with another body or in another append (SPEC E5, D22)."""

    code = "event_id_reused"

    def __init__(self, event_type: str, event_id: str, problem: str) -> None:
        IllegalEvent.__init__(self, event_type, f"event id {event_id} {problem}")
        self.event_id = event_id


class AppendConflict(LedgerError, IllegalEvent):
    """Another writer extended the stream first: reload, decide again, retry (SPEC E5)."""

    code = "append_conflict"

    def __init__(self, stream_id: str, event_type: str, *, seq_expected: int, seq_found: int) -> None:
        problem = f"expected to follow position {seq_expected} of {stream_id}, which is at {seq_found}"
        IllegalEvent.__init__(self, event_type, problem)
        self.stream_id = stream_id
        self.seq_expected = seq_expected
        self.seq_found = seq_found


class ConstraintViolated(LedgerError, IllegalEvent):
    """The database itself refused a row; `rule` names the trigger or key that did."""

    code = "constraint_violated"

    def __init__(self, event_type: str, rule: str, detail: str) -> None:
        IllegalEvent.__init__(self, event_type, f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail


class OwnedElsewhere(LedgerError, IllegalEvent):
    """The run belongs to another open ledger, and only its owner may append to it while it is running (SPEC E7)."""

    code = "owned_elsewhere"

    def __init__(self, run_id: str, event_type: str) -> None:
        IllegalEvent.__init__(self, event_type, f"run {run_id} belongs to another process")
        self.run_id = run_id


class SessionUnreadable(LedgerError):
    """What is stored of a session's own stream is nothing that this program understands."""

    code = "session_unreadable"

    def __init__(self, session_id: str, detail: str) -> None:
        self.session_id = session_id
        self.detail = detail
        super().__init__(f"what is stored of session {session_id} cannot be read ({detail})")


class RunUnreadable(LedgerError, IllegalEvent):
    """What is stored of a run adds up to nothing that this program understands, so nothing can follow it."""

    code = "run_unreadable"

    def __init__(self, run_id: str, detail: str) -> None:
        IllegalEvent.__init__(self, "an event", f"what is stored of run {run_id} cannot be read ({detail})")
        self.run_id = run_id
        self.detail = detail
