-- What holds the rules of a ledger on PostgreSQL, for every connection: columns, triggers, and the leases of owners.
-- Statements are separated by blank lines. Functions name everything in full, so that no search path leads them astray.

ALTER TABLE event ALTER COLUMN pos ADD GENERATED ALWAYS AS IDENTITY (CACHE 1)

ALTER TABLE event ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id()

ALTER TABLE stream SET (fillfactor = 70)

ALTER TABLE diagnosis_run SET (fillfactor = 70)

CREATE TABLE owner (owner_id text COLLATE "C" PRIMARY KEY, beat bigint NOT NULL)

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation', MESSAGE = TG_ARGV[0];
END $$

CREATE TRIGGER ledger_meta_permanent BEFORE DELETE OR TRUNCATE ON ledger_meta FOR EACH STATEMENT
EXECUTE FUNCTION refuse('meta_permanent: what a ledger says of itself is never deleted')

CREATE TRIGGER ledger_meta_identity BEFORE UPDATE ON ledger_meta FOR EACH ROW
WHEN (OLD.key IN ('ledger_id', 'hash_version') OR NEW.key <> OLD.key)
EXECUTE FUNCTION refuse('meta_permanent: the identity of a ledger never changes')

CREATE TRIGGER event_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON event FOR EACH STATEMENT
EXECUTE FUNCTION refuse('event_immutable: an event is never changed or deleted')

CREATE TRIGGER stream_permanent BEFORE DELETE OR TRUNCATE ON stream FOR EACH STATEMENT
EXECUTE FUNCTION refuse('stream_permanent: a stream is never deleted')

CREATE TRIGGER stream_identity BEFORE UPDATE ON stream FOR EACH ROW
WHEN ((NEW.stream_id, NEW.kind, NEW.session_id, NEW.run_id) IS DISTINCT FROM
    (OLD.stream_id, OLD.kind, OLD.session_id, OLD.run_id))
EXECUTE FUNCTION refuse('stream_permanent: whose stream it is never changes')

CREATE TRIGGER stream_epoch BEFORE UPDATE ON stream FOR EACH ROW WHEN (NEW.owner_epoch < OLD.owner_epoch)
EXECUTE FUNCTION refuse('stream_epoch: a run never goes back to an owner it had')

-- After the statement, which adds events and moves their stream's head at once.
CREATE FUNCTION check_stream_head() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    last record;
BEGIN
    SELECT seq, link INTO last FROM {schema}.event WHERE stream_id = NEW.stream_id ORDER BY seq DESC LIMIT 1;
    IF (last.seq, last.link) IS DISTINCT FROM (NEW.head_seq, NEW.head_link) THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'stream_head: the head of a stream is its last event';
    END IF;
    RETURN NULL;
END $$

CREATE TRIGGER stream_head_of_new AFTER INSERT ON stream FOR EACH ROW EXECUTE FUNCTION check_stream_head()

CREATE TRIGGER stream_head AFTER UPDATE ON stream FOR EACH ROW
WHEN ((NEW.head_seq, NEW.head_link) IS DISTINCT FROM (OLD.head_seq, OLD.head_link))
EXECUTE FUNCTION check_stream_head()

-- Each look into the log is in the order of an index, so that the plan is right even if it was made on an empty table.
CREATE FUNCTION check_events() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    broken text;
BEGIN
    SELECT CASE
        WHEN last_seq - first_seq + 1 <> event_count OR first_seq <> 1 + coalesce((
            SELECT seq FROM {schema}.event
            WHERE event.stream_id = of_stream.stream_id AND seq < first_seq ORDER BY seq DESC LIMIT 1
        ), 0) THEN 'event_sequence: not the next number in its stream'
        WHEN NOT coalesce(is_at_home, false) THEN 'isolation: session and run are not those of the stream'
        WHEN last_work_seq > (
            SELECT seq FROM {schema}.event WHERE event.stream_id = of_stream.stream_id AND type = 'run.terminated'
        ) THEN 'run_terminated: the run has ended'
        WHEN head_seq < last_seq THEN 'event_head: an event comes together with the head of its stream'
        WHEN NOT is_of_now THEN 'event_transaction: an event bears the number of its own transaction'
    END INTO broken FROM (
        SELECT added.stream_id, count(*) AS event_count, min(seq) AS first_seq, max(seq) AS last_seq,
            max(seq) FILTER (WHERE type NOT IN (
                'attempt.finished_late', 'usage.settled', 'hidden_retry.detected',
                'feedback.recorded', 'evaluation.recorded', 'case.recorded', 'content.erased'
            )) AS last_work_seq,
            bool_and((stream.session_id, stream.run_id) IS NOT DISTINCT FROM (added.session_id, added.run_id)
                AND stream.stream_id IS NOT NULL) AS is_at_home,
            min(head_seq) AS head_seq, bool_and(xid = pg_current_xact_id()) AS is_of_now
        FROM added LEFT JOIN {schema}.stream ON stream.stream_id = added.stream_id
        GROUP BY added.stream_id
    ) AS of_stream ORDER BY 1 LIMIT 1;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation', MESSAGE = broken;
    END IF;
    RETURN NULL;
END $$

CREATE TRIGGER event_insert AFTER INSERT ON event REFERENCING NEW TABLE AS added FOR EACH STATEMENT
EXECUTE FUNCTION check_events()

CREATE FUNCTION check_session_of_run() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    PERFORM FROM {schema}.stream WHERE stream_id = 'r:' || NEW.run_id AND session_id = NEW.session_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'isolation: the session is not that of the run';
    END IF;
    RETURN NULL;
END $$

CREATE FUNCTION check_session_of_case() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    PERFORM FROM {schema}.stream WHERE stream_id = 'r:' || NEW.diagnosis_id AND session_id = NEW.session_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'isolation: the session is not that of the run';
    END IF;
    RETURN NULL;
END $$

CREATE TRIGGER diagnosis_run_insert AFTER INSERT ON diagnosis_run FOR EACH ROW
EXECUTE FUNCTION check_session_of_run()

CREATE TRIGGER diagnosis_run_update AFTER UPDATE ON diagnosis_run FOR EACH ROW
WHEN ((NEW.run_id, NEW.session_id) IS DISTINCT FROM (OLD.run_id, OLD.session_id))
EXECUTE FUNCTION check_session_of_run()

CREATE TRIGGER agent_step_insert AFTER INSERT ON agent_step FOR EACH ROW EXECUTE FUNCTION check_session_of_run()

CREATE TRIGGER agent_step_update AFTER UPDATE ON agent_step FOR EACH ROW
WHEN ((NEW.run_id, NEW.session_id) IS DISTINCT FROM (OLD.run_id, OLD.session_id))
EXECUTE FUNCTION check_session_of_run()

CREATE TRIGGER tool_invocation_insert AFTER INSERT ON tool_invocation FOR EACH ROW
EXECUTE FUNCTION check_session_of_run()

CREATE TRIGGER tool_invocation_update AFTER UPDATE ON tool_invocation FOR EACH ROW
WHEN ((NEW.run_id, NEW.session_id) IS DISTINCT FROM (OLD.run_id, OLD.session_id))
EXECUTE FUNCTION check_session_of_run()

CREATE TRIGGER case_library_insert AFTER INSERT ON case_library FOR EACH ROW EXECUTE FUNCTION check_session_of_case()

CREATE TRIGGER case_library_update AFTER UPDATE ON case_library FOR EACH ROW
WHEN ((NEW.diagnosis_id, NEW.session_id) IS DISTINCT FROM (OLD.diagnosis_id, OLD.session_id))
EXECUTE FUNCTION check_session_of_case()

-- Also in sessions that replicate (session_replication_role), where others than these are silent.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE NOT tgisinternal AND relnamespace = '{schema}'::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE {schema}.%I ENABLE ALWAYS TRIGGER %I', one.relname, one.tgname);
    END LOOP;
END $$
