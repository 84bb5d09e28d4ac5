"""The log in one SQLite file: one connection that writes, in transactions that exclude every other process."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from harness.clock import WallClock
from harness.errors import HarnessError, LedgerUnavailable
from harness.journal import Recorded
from ledger.append.deciding import Setting
from ledger.append.prepared import Append
from ledger.errors import LedgerError
from ledger.failpoints import reached
from ledger.store import statements
from ledger.store.batch import Batch
from ledger.store.faults import unavailable, violated
from ledger.store.heads import RunHeads
from ledger.store.lock import FileLock
from ledger.store.opened import OpenedFiles
from ledger.store.place import size_of
from ledger.store.texts import MERGE

log = logging.getLogger(__name__)

T = TypeVar("T")

LOCK_TIMEOUT_S = 5.0
"""How long a transaction waits for other processes before it fails."""
CHECKPOINT_COMMITS = 64
"""A checkpoint is due after so many transactions, as the log is written faster over what it held than at its end,"""
CHECKPOINT_BYTES = 16 * 1024 * 1024
"""or after so many bytes of content; sooner when nothing else is to do."""
WAL_TRUNCATE_BYTES = 64 * 1024 * 1024
"""A write-ahead log of this size is cut to nothing as soon as no reader needs it,"""
WAL_WAIT_S = 0.05
"""for which a checkpoint in the midst of work waits so long;"""
WAL_WARN_BYTES = 256 * 1024 * 1024
"""one of this size is told of, since a reader that stays in the midst of reading keeps it."""

UNDO_IN_MEMORY = "PRAGMA temp_store = MEMORY"
"""What a statement of many rows would need to take them back goes to no file."""
PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    UNDO_IN_MEMORY,
)


def connect(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> sqlite3.Connection:
    """A connection that may write; call with the write lock held. `LedgerUnavailable` if there can be none."""
    if path.exists() and not os.access(path, os.W_OK):
        # SQLite would say so at the first write only.
        raise LedgerUnavailable("the file is read-only")
    try:
        connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            for pragma in PRAGMAS:
                connection.execute(pragma)
            # With the first read a file that had no log until now, as a copy has none, gets one.
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise unavailable(error) from error
    return connection


class SqliteStore:
    """Runs transactions, one at a time; one thread calls it."""

    def __init__(
        self, path: Path, lock: FileLock, setting: Setting, clock: WallClock, *, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> None:
        self._lock = lock
        self._lock_timeout_s = lock_timeout_s
        self._setting = setting
        self._clock = clock
        self.path = path
        self._process_id = os.getpid()
        with lock.held(lock_timeout_s):
            self._connection = connect(path, lock_timeout_s)
            self._files = OpenedFiles(path)
        self._heads = RunHeads(self._connection, setting.owner_id)
        self._commits = 0
        self._bytes = 0
        self._is_warned = False

    def append_all(self, appends: Sequence[Append]) -> list[Recorded | Exception]:
        """What became of each append, all durable in one transaction; `LedgerUnavailable` if nothing was stored."""
        results: list[Recorded | Exception] = []
        self._heads.warm({append.run_id for append in appends})
        try:
            with self._transaction() as batch:
                results = [_attempt(batch, append, looks=False) for append in appends]
                batch.write()
        except sqlite3.IntegrityError:
            # One of them is stored already, or broke another rule that the database holds: find out which, and let the
            # others through.
            results = self._append_each(appends)
        self._bytes += sum(append.size_bytes for append in appends)
        return results

    def run(self, job: Callable[[Batch], T], run_ids: Sequence[str] = ()) -> T:
        """Whatever `job` does, in a transaction of its own; `run_ids` are the runs that it looks at."""
        self._heads.warm(run_ids)
        try:
            with self._transaction() as batch:
                result = job(batch)
                batch.write()
        except sqlite3.IntegrityError as error:
            raise violated(error, "a job") from error
        return result

    def tidy(self, *, is_idle: bool) -> bool:
        """Checkpoint where that is due, or where nothing else is to do; whether nothing is left of it for later."""
        is_due = self._commits >= CHECKPOINT_COMMITS or self._bytes >= CHECKPOINT_BYTES
        is_large = (is_idle or is_due) and self._wal_bytes() > WAL_TRUNCATE_BYTES
        if not (is_due or (is_idle and (self._commits > 0 or is_large))):
            return True
        with self._held(0.0 if is_idle else self._lock_timeout_s):
            # Beside readers that come and go a log that is only checkpointed never begins anew.
            is_done = self._checkpoint("TRUNCATE" if is_large else "PASSIVE", 0.0 if is_idle else WAL_WAIT_S)
        self._warn_of_wal()
        return is_done or not is_large

    def truncate_log(self) -> bool:
        """Bring the whole log into the file and cut it to nothing; False if a reader is in the way."""
        with self._held(self._lock_timeout_s):
            return self._checkpoint("TRUNCATE")

    def rewrite_file(self) -> None:
        """Write the file anew with nothing in it but what the tables hold; others wait meanwhile."""
        with self._held(self._lock_timeout_s):
            try:
                # The copy is as large as the file, and is not for memory.
                self._connection.execute("PRAGMA temp_store = FILE")
                self._connection.execute(MERGE)
                self._connection.execute("VACUUM")
            except sqlite3.Error as error:
                raise unavailable(error) from error
            finally:
                self._connection.execute(UNDO_IN_MEMORY)

    def close(self) -> None:
        """Checkpoint and close, under the lock, since the last connection to close checkpoints by itself."""
        if os.getpid() != self._process_id:
            return
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._lock.held(self._lock_timeout_s))
                self._files.check()
                self._checkpoint("TRUNCATE")
            except LedgerUnavailable as error:
                log.warning("the ledger was closed without a checkpoint: %s", error)
            self._connection.close()

    @contextlib.contextmanager
    def _held(self, timeout_s: float) -> Iterator[None]:
        """The lock, and the certainty that whoever opens the ledger next finds what is written now."""
        with self._lock.held(timeout_s):
            self._files.check()
            yield

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Batch]:
        if os.getpid() != self._process_id:
            raise LedgerUnavailable("a forked process cannot use its parent's ledger")
        now_us = self._clock.now_us()
        if now_us < 0:
            raise LedgerUnavailable("the clock shows a time before 1970")
        with self._held(self._lock_timeout_s):
            try:
                reached("before begin")
                self._connection.execute(statements.BEGIN)
                try:
                    reached("after begin")
                    self._heads.begin()
                    batch = Batch(self._connection, self._heads, self._setting, now_us)
                    yield batch
                    reached("before commit")
                    self._connection.execute("COMMIT")
                    reached("after commit")
                except BaseException as error:
                    self._roll_back()
                    if not isinstance(error, HarnessError | LedgerError):
                        self._heads.forget()
                    raise
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise unavailable(error) from error
        batch.committed()
        self._commits += 1

    def _append_each(self, appends: Sequence[Append]) -> list[Recorded | Exception]:
        """The same in one transaction, each append under a savepoint of its own."""
        results: list[Recorded | Exception] = []
        with self._transaction() as batch:
            for append in appends:
                try:
                    with batch.single() as single:
                        result = _attempt(single, append, looks=True)
                except sqlite3.IntegrityError as error:
                    result = violated(error, append.event_type)
                results.append(result)
        return results

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _warn_of_wal(self) -> None:
        wal_bytes = self._wal_bytes()
        if wal_bytes > WAL_WARN_BYTES and not self._is_warned:
            log.warning("the log beside the ledger has %d bytes: a reader that does not end keeps it", wal_bytes)
        self._is_warned = wal_bytes > WAL_WARN_BYTES

    def _checkpoint(self, mode: str, wait_s: float = 0.0) -> bool:
        """Bring the log into the file, as far as no reader is in the way; what fails now is done another time."""
        self._commits = self._bytes = 0
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {round(wait_s * 1000)}")
            reached("before checkpoint")
            (is_busy, *_) = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            reached("after checkpoint")
            return not is_busy
        except sqlite3.Error as error:
            log.warning("the ledger could not be checkpointed: %s", error)
            return False
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {round(self._lock_timeout_s * 1000)}")

    def _wal_bytes(self) -> int:
        return size_of(Path(f"{self.path}-wal"))


def _attempt(batch: Batch, append: Append, *, looks: bool) -> Recorded | Exception:
    """The append taken into the batch, or why it is refused; a fault in folding one run fails none of the others.

    Hardly any append was stored before: that is looked up only where it is refused, or where the database refuses it.
    """
    try:
        return batch.append(append, looks=looks)
    except sqlite3.Error:
        raise
    except HarnessError as error:
        return error if looks else _attempt(batch, append, looks=True)
    except Exception as error:
        log.exception("run %s: an append could not be folded", append.run_id)
        return error
