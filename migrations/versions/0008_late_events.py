"""What may come after a run has ended is told by comparing: of a list SQLite makes a table, for each event anew."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"

# The trigger of 0001, but for how it names the types; a fifth of what inserting an event cost.
SQLITE = """
DROP TRIGGER event_insert

CREATE TRIGGER event_insert BEFORE INSERT ON event
BEGIN
    SELECT RAISE(ABORT, 'event_position: not the next position of the log')
    WHERE NEW.pos IS NOT (SELECT coalesce(max(pos), 0) + 1 FROM event);
    SELECT RAISE(ABORT, 'event_sequence: not the next number in its stream')
    WHERE NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM event WHERE stream_id = NEW.stream_id);
    SELECT RAISE(ABORT, 'event_id: the stream has an event of that id')
    WHERE EXISTS (SELECT 1 FROM event WHERE stream_id = NEW.stream_id AND event_id = NEW.event_id);
    SELECT RAISE(ABORT, 'isolation: session and run are not those of the stream')
    WHERE NOT EXISTS (
        SELECT 1 FROM stream
        WHERE stream_id = NEW.stream_id AND session_id IS NEW.session_id AND run_id IS NEW.run_id
    );
    SELECT RAISE(ABORT, 'run_terminated: the run has ended')
    WHERE NEW.type <> 'attempt.finished_late' AND NEW.type <> 'usage.settled' AND NEW.type <> 'hidden_retry.detected'
        AND NEW.type <> 'feedback.recorded' AND NEW.type <> 'evaluation.recorded' AND NEW.type <> 'case.recorded'
        AND NEW.type <> 'content.erased'
        AND EXISTS (SELECT 1 FROM event WHERE stream_id = NEW.stream_id AND type = 'run.terminated');
END;
"""


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        for statement in SQLITE.split("\n\n"):
            op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
