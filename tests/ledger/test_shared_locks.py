"""One process may open a ledger any number of times without losing the locks that keep its log alive (CASES 33)."""

from pathlib import Path

from ledger import Ledger, LedgerReader


def locks_on(path) -> int:
    """Locks that processes hold on the file, as the kernel lists them; SQLite's are of the kind POSIX."""
    inode = f":{path.stat().st_ino} "
    return sum("POSIX" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


async def test_another_reader_leaves_the_locks_of_the_open_ledger_alone(ledger, path):
    held = locks_on(path)
    assert held > 0
    async with await LedgerReader.open(path) as reader:
        await reader.recent_runs()
    assert locks_on(path) == held


async def test_a_ledger_opened_and_closed_beside_another_leaves_the_log_where_it_is(ledger, path):
    held = locks_on(path)
    log = Path(f"{path}-wal").stat().st_ino
    await (await Ledger.open(path)).close()
    assert locks_on(path) == held
    assert Path(f"{path}-wal").stat().st_ino == log
