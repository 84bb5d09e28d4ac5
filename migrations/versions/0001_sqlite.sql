-- What holds the rules of a ledger on SQLite, for every connection. Statements are separated by blank lines.
-- Events are checked before the insert, so that no REPLACE gets as far as deleting what is in its way.

CREATE TRIGGER ledger_meta_insert BEFORE INSERT ON ledger_meta
WHEN EXISTS (SELECT 1 FROM ledger_meta WHERE key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'meta_exists: a key is set once, then updated'); END;

CREATE TRIGGER ledger_meta_update BEFORE UPDATE ON ledger_meta
WHEN OLD.key IN ('ledger_id', 'hash_version') OR NEW.key IS NOT OLD.key
BEGIN SELECT RAISE(ABORT, 'meta_permanent: the identity of a ledger never changes'); END;

CREATE TRIGGER ledger_meta_delete BEFORE DELETE ON ledger_meta
BEGIN SELECT RAISE(ABORT, 'meta_permanent: what a ledger says of itself is never deleted'); END;

CREATE TRIGGER stream_insert BEFORE INSERT ON stream
WHEN EXISTS (SELECT 1 FROM stream WHERE stream_id = NEW.stream_id)
BEGIN SELECT RAISE(ABORT, 'stream_exists: a stream is made once'); END;

CREATE TRIGGER stream_delete BEFORE DELETE ON stream
BEGIN SELECT RAISE(ABORT, 'stream_permanent: a stream is never deleted'); END;

CREATE TRIGGER stream_update BEFORE UPDATE ON stream
WHEN NEW.stream_id IS NOT OLD.stream_id OR NEW.kind IS NOT OLD.kind
    OR NEW.session_id IS NOT OLD.session_id OR NEW.run_id IS NOT OLD.run_id
BEGIN SELECT RAISE(ABORT, 'stream_permanent: whose stream it is never changes'); END;

CREATE TRIGGER stream_head BEFORE UPDATE ON stream
WHEN (NEW.head_seq, NEW.head_link) IS NOT (OLD.head_seq, OLD.head_link)
    AND (NEW.head_seq, NEW.head_link) IS NOT
        (SELECT seq, link FROM event WHERE stream_id = NEW.stream_id ORDER BY seq DESC LIMIT 1)
BEGIN SELECT RAISE(ABORT, 'stream_head: the head of a stream is its last event'); END;

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
    WHERE NEW.type NOT IN (
        'attempt.finished_late', 'usage.settled', 'hidden_retry.detected',
        'feedback.recorded', 'evaluation.recorded', 'case.recorded', 'content.erased'
    ) AND EXISTS (SELECT 1 FROM event WHERE stream_id = NEW.stream_id AND type = 'run.terminated');
END;

CREATE TRIGGER event_update BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'event_immutable: an event is never changed'); END;

CREATE TRIGGER event_delete BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'event_immutable: an event is never deleted'); END;

CREATE TRIGGER diagnosis_run_insert BEFORE insert ON diagnosis_run
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;

CREATE TRIGGER diagnosis_run_update BEFORE update ON diagnosis_run
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;

CREATE TRIGGER agent_step_insert BEFORE insert ON agent_step
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;

CREATE TRIGGER agent_step_update BEFORE update ON agent_step
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;

CREATE TRIGGER tool_invocation_insert BEFORE insert ON tool_invocation
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;

CREATE TRIGGER tool_invocation_update BEFORE update ON tool_invocation
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.run_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;

CREATE TRIGGER case_library_insert BEFORE insert ON case_library
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.diagnosis_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;

CREATE TRIGGER case_library_update BEFORE update ON case_library
WHEN NEW.session_id IS NOT (SELECT session_id FROM stream WHERE stream_id = 'r:' || NEW.diagnosis_id)
BEGIN SELECT RAISE(ABORT, 'isolation: the session is not that of the run'); END;
