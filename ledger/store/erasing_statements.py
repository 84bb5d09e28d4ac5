"""What erasing asks of either database: the same statements, whose parameters have names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.ids import run_stream, session_stream
from ledger.erasing.erasing import Order
from ledger.errors import ContentNotFound, LedgerError, RunNotFound, SessionNotFound

TARGETS_AT_ONCE = 200

# Without `state`, which SQLite keeps behind the data: of a large content that means reading it whole.
_IS_LEFT = "(salt IS NOT NULL OR data IS NOT NULL)"
_IS_MEANT = "digest = coalesce(:digest, digest)"
_STORED_BYTES = "CASE WHEN data IS NULL THEN 0 ELSE size_bytes END"
_RUNS = {
    "RUN": "SELECT stream_id FROM stream WHERE stream_id = 'r:' || :of_run_id",
    "SESSION": "SELECT stream_id FROM stream WHERE kind = 'run' AND session_id = :of_session_id",
    "DIGEST": "SELECT stream_id FROM content WHERE digest = :digest",
    "DIGEST OF RUN": "SELECT stream_id FROM content WHERE digest = :digest AND stream_id = 'r:' || :of_run_id",
    "RETENTION": "SELECT 'r:' || run_id AS stream_id FROM diagnosis_run WHERE ended_us < :before_us",
}
"""The streams that an order is about."""
TARGETS = {
    about: f"SELECT stream_id FROM ({runs}) AS found WHERE stream_id > :after"  # noqa: S608 - ours
    f" AND EXISTS (SELECT 1 FROM content WHERE content.stream_id = found.stream_id AND {_IS_LEFT} AND {_IS_MEANT})"
    " ORDER BY stream_id LIMIT :limit"
    for about, runs in _RUNS.items()
}
COUNT = {
    about: f"SELECT count(DISTINCT stream_id), count(*), coalesce(sum({_STORED_BYTES}), 0) FROM content"  # noqa: S608
    f" WHERE stream_id IN ({runs}) AND {_IS_LEFT} AND {_IS_MEANT}"
    for about, runs in _RUNS.items()
}
HAS_STREAM = "SELECT 1 FROM stream WHERE stream_id = :stream_id AND session_id = :of_session_id"
HAS_CONTENT = "SELECT 1 FROM content WHERE stream_id = :stream_id AND digest = :digest"
HAS_DIGEST = "SELECT 1 FROM content WHERE digest = :digest LIMIT 1"
TO_TAKE = (
    f"SELECT digest, {_STORED_BYTES}, length(data) FROM content WHERE stream_id = :stream_id AND {_IS_LEFT}"  # noqa: S608
    f" AND {_IS_MEANT} LIMIT :limit"
)
TAKE = (
    "UPDATE content SET data = NULL, salt = NULL, encoding = NULL, state = 'erased', erased_seq = :seq"
    " WHERE stream_id = :stream_id AND digest = :digest"
)
ORDER = "erasure_id, scope, of_session_id, of_run_id, digest, before_us, reason, actor"
INSERT_ERASURE = (
    f"INSERT INTO erasure ({ORDER}, is_marked, run_count, content_count, size_bytes)"  # noqa: S608 - ours
    " VALUES (:erasure_id, :scope, :of_session_id, :of_run_id, :digest, :before_us, :reason, :actor, 0, 0, 0, 0)"
)
ADD_TO_RUN = (
    "INSERT INTO erased_run (erasure_id, stream_id, content_count, size_bytes) VALUES"
    " (:erasure_id, :stream_id, :content_count, :size_bytes) ON CONFLICT (erasure_id, stream_id) DO UPDATE SET"
    " content_count = erased_run.content_count + excluded.content_count,"
    " size_bytes = erased_run.size_bytes + excluded.size_bytes"
)
SUM_UP = (
    "UPDATE erasure SET is_marked = 1, (run_count, content_count, size_bytes) = (SELECT count(*),"
    " coalesce(sum(content_count), 0), coalesce(sum(size_bytes), 0) FROM erased_run WHERE erasure_id = :erasure_id)"
    " WHERE erasure_id = :erasure_id AND is_marked = 0"
)
UNFINISHED = f"SELECT {ORDER}, is_marked FROM erasure ORDER BY erasure_id"  # noqa: S608 - names of ours
RUNS_TO_TELL = "SELECT stream_id, content_count, size_bytes FROM erased_run WHERE erasure_id = :erasure_id LIMIT :limit"
FORGET_RUN = "DELETE FROM erased_run WHERE erasure_id = :erasure_id AND stream_id = :stream_id"
FIGURES = "SELECT run_count, content_count, size_bytes FROM erasure WHERE erasure_id = :erasure_id"
FORGET_ERASURE = "DELETE FROM erasure WHERE erasure_id = :erasure_id"


def about(order: Order) -> str:
    """By which statements what the order is about is found."""
    return "DIGEST OF RUN" if order.scope == "DIGEST" and order.of_run_id is not None else order.scope


def values_of(order: Order) -> dict[str, Any]:
    """The order as parameters, and as a row."""
    return {name: getattr(order, name) for name in ORDER.split(", ")}


def order_of(row: tuple[Any, ...]) -> Order:
    """The order that a row of `UNFINISHED` holds."""
    return Order(**dict(zip(ORDER.split(", "), row, strict=False)))


def taken_of(order: Order, stream_id: str, content_count: int, size_bytes: int) -> dict[str, Any]:
    """What was taken of a run, as a row of `erased_run`."""
    figures = {"content_count": content_count, "size_bytes": size_bytes}
    return {"erasure_id": order.erasure_id, "stream_id": stream_id} | figures


def checks(order: Order) -> Iterator[tuple[str, dict[str, Any], LedgerError]]:
    """What has to be there, how to look for it, and what to raise if it is not."""
    values, session_id, run_id = values_of(order), str(order.of_session_id), str(order.of_run_id)
    if order.of_run_id is not None:
        yield HAS_STREAM, values | {"stream_id": run_stream(run_id)}, RunNotFound(session_id, run_id)
        if order.digest is not None:
            yield HAS_CONTENT, values | {"stream_id": run_stream(run_id)}, ContentNotFound(order.digest)
    elif order.digest is not None:
        yield HAS_DIGEST, values, ContentNotFound(order.digest)
    elif order.scope == "SESSION":
        yield HAS_STREAM, values | {"stream_id": session_stream(session_id)}, SessionNotFound(session_id)


def up_to(bytes_max: int, found: Iterable[Any]) -> list[tuple[str, int, int | None]]:
    """As many rows of `TO_TAKE` as have so many bytes, and one more."""
    rows: list[tuple[str, int, int | None]] = []
    for row in found:
        rows.append((row[0], row[1], row[2]))
        bytes_max -= row[2] or 0
        if bytes_max <= 0:
            break
    return rows
