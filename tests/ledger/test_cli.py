"""The commands: text for people, JSON for programs, one line for what went wrong."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from ledger import Ledger
from ledger.migrate import ensure_current, lock_of
from ledger.store.identity import HEAD_REVISION
from tests.ledger import commands as cli
from tests.ledger.scripted import ScriptedRun, seal


@pytest.fixture
def recorded(path):
    async def record():
        async with await Ledger.open(path) as ledger:
            for number in range(3):
                for submission in ScriptedRun(f"run-{number}", f"session-{number % 2}").whole():
                    ledger.journal.submit(submission).result()

    asyncio.run(record())
    return path


@pytest.fixture
def call():
    def invoke(command, *args, **env):
        return CliRunner().invoke(command, [str(arg) for arg in args], env=env or {"TACHOGRAPH_DB": ""})

    return invoke


def test_runs_are_listed_newest_first(call, recorded):
    lines = call(cli.runs, "--db", recorded).stdout.splitlines()
    assert lines[0].split() == ["RUN", "STATUS", "FLOW", "STEPS", "TOOLS", "CREATED", "QUERY"]
    assert [line.split()[0] for line in lines[1:]] == ["session-0/run-2", "session-1/run-1", "session-0/run-0"]


def test_a_run_is_asked_to_stop_once_and_not_after_its_end(call, path):  # E7
    async def with_running(work):
        async with await Ledger.open(path) as ledger:
            ledger.journal.submit(ScriptedRun().start()).result()
            return await asyncio.to_thread(work)

    def ask():
        return [call(cli.cancel, "session-1/run-1", "--actor", "op-7", "--db", path) for _ in range(2)]

    first, second = asyncio.run(with_running(ask))
    assert (first.exit_code, first.stdout) == (0, "asked: session-1/run-1 is to stop\n")
    assert (second.exit_code, second.stdout) == (0, "was asked before: session-1/run-1 is to stop\n")
    refused = call(cli.cancel, "session-1/run-1", "--db", path)
    assert (refused.exit_code, refused.stderr) == (1, "Error: run run-1 was already ended CANCELLED (USER_REQUESTED)\n")
    assert call(cli.cancel, "session-1/run-9", "--db", path).exit_code == 1
    assert call(cli.cancel, "run-1", "--db", path).exit_code == 2


def test_the_ledger_may_be_named_by_the_environment(call, recorded):
    assert call(cli.runs, TACHOGRAPH_DB=str(recorded)).exit_code == 0


def test_runs_as_json_have_pages(call, recorded):
    first = json.loads(call(cli.runs, "--db", recorded, "--json", "--limit", 2).stdout)
    second = json.loads(call(cli.runs, "--db", recorded, "--json", "--cursor", first["next_cursor"]).stdout)
    assert [run["run_id"] for run in (*first["rows"], *second["rows"])] == ["run-2", "run-1", "run-0"]
    assert second["next_cursor"] is None


def test_runs_of_one_session(call, recorded):
    found = json.loads(call(cli.runs, "--db", recorded, "--session", "session-1", "--json").stdout)
    assert [run["run_id"] for run in found["rows"]] == ["run-1"]


def test_an_empty_ledger_says_so(call, path):
    assert call(cli.runs, "--db", path).stdout == "no runs\n"


def test_a_run_is_shown_with_its_cost_what_is_reserved_and_what_is_only_observed(call, path):
    async def record():
        run = ScriptedRun()
        step = run.attempt("model", "planner")
        limits = {"cost_micros": 5_000, "observe:model_calls": 0}
        async with await Ledger.open(path) as ledger:
            for submission in (
                run.start(limits=limits, currency="USD", price_table="2026-11"),
                step.start(reserve={"cost_micros": 900}),
                step.pass_observed("model_calls", 0),
                step.retry_unseen(),
            ):
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    lines = [" ".join(line.split()) for line in call(cli.show, "session-1/run-1", "--db", path).stdout.splitlines()]
    assert "cost_micros 900 (900 reserved) 5000" in lines
    assert "model_calls 1 0 (only observed)" in lines
    assert "cost_micros are millionths of USD, by the prices 2026-11" in lines
    assert "hidden retries: 1, limits passed: 1" in lines
    shown = json.loads(call(cli.show, "session-1/run-1", "--db", path, "--json").stdout)
    assert shown["run"]["observed_limits"] == {"model_calls": 0}


def test_what_nobody_reported_is_no_figure_and_each_tool_has_its_limit(call, path):  # H4a, CASES 9
    async def record():
        run = ScriptedRun()
        told, untold = (run.attempt("model", "planner", ordinal=ordinal) for ordinal in (1, 2))
        tool = run.attempt("tool", "query_logs")
        limits = {"input_tokens": 500, "cost_micros": 5_000, "tool_default": 4, "tool_calls": 9}
        async with await Ledger.open(path) as ledger:
            for submission in (
                run.start(limits=limits, currency="USD", price_table="2026-11"),
                told.start(),
                told.succeed(usage={"input_tokens": 12, "output_tokens": 3}),
                untold.start(),
                untold.succeed(),
                tool.start({}),
            ):
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    lines = [" ".join(line.split()) for line in call(cli.show, "session-1/run-1", "--db", path).stdout.splitlines()]
    assert {"input_tokens ≥ 12 500", "output_tokens ≥ 3 -", "tool:query_logs 1 4", "tool_calls 1 9"} <= set(lines)
    assert "attempts of unknown usage: 1" in lines


def test_a_run_is_shown_with_steps_tools_and_graph(call, recorded):
    text = call(cli.show, "session-0/run-0", "--db", recorded).stdout
    for part in (
        "SUCCESS (COMPLETED)",
        "planner",
        "query_logs",
        "planner > executor",
        "12 in, 3 out",
        "The disk is full.",
    ):
        assert part in text


def test_a_run_as_json_is_its_trace(call, recorded):
    trace = json.loads(call(cli.show, "session-0/run-0", "--db", recorded, "--json").stdout)
    assert trace["run"]["summary"]["run_id"] == "run-0"
    assert trace["answer"]["text"] == "The disk is full."


def test_hostile_text_cannot_reach_the_terminal(call, path):  # CASES 46
    async def record():
        async with await Ledger.open(path) as ledger:
            run = ScriptedRun()
            query = seal("\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\r\nnew line")
            start = run.start()
            event = start.events[0].model_copy(update={"query_digest": query.digest})
            ledger.journal.submit(run.submission(event, contents=(query,))).result()

    asyncio.run(record())
    for text in (call(cli.runs, "--db", path).stdout, call(cli.show, "session-1/run-1", "--db", path).stdout):
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(text)
        assert "gnp.exe new line" in text


def test_a_foreign_and_an_unknown_run_are_not_found_alike(call, recorded):
    for run_id in ("run-1", "run-9"):
        result = call(cli.show, f"session-0/{run_id}", "--db", recorded)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == f"Error: there is no run {run_id} in session session-0\n"


@pytest.mark.parametrize("run", ["run-0", "a/b/c", "/", "session-0/", "a b/c"])
def test_a_run_is_named_by_both_ids(call, recorded, run):
    result = call(cli.show, run, "--db", recorded)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_rebuild_that_finds_nothing_says_what_it_read(call, recorded):
    result = call(cli.rebuild, "--db", recorded)
    assert (result.exit_code, result.stdout) == (0, "3 runs, 2 sessions, 11 rows\n")


def test_a_rebuild_that_finds_something_says_what_and_its_exit_code_too(call, recorded, plain):
    plain().execute("DELETE FROM agent_step WHERE run_id = 'run-1'")
    result = call(cli.rebuild, "--db", recorded, "--json")
    assert (result.exit_code, json.loads(result.stdout)["runs_changed"]) == (1, ["run-1"])
    assert call(cli.rebuild, "--db", recorded).exit_code == 0


def test_migrate_brings_an_older_ledger_up_to_date(call, tmp_path):
    path = tmp_path / "old.db"
    lock = lock_of(path)
    ensure_current(path, lock, revision="0001")
    lock.close()
    assert call(cli.runs, "--db", path).exit_code == 2
    result = call(cli.migrate, "--db", path, "--json")
    assert (json.loads(result.stdout)["before"], json.loads(result.stdout)["revision"]) == ("0001", HEAD_REVISION)
    assert "is up to date" in call(cli.migrate, "--db", path).stdout
    assert call(cli.runs, "--db", path).exit_code == 0


def test_migrate_makes_a_new_ledger_only_where_that_is_asked_for(call, tmp_path):
    path = tmp_path / "new.db"
    assert call(cli.migrate, "--db", path).exit_code == 2
    assert not path.exists()
    assert call(cli.migrate, "--db", path, "--create").exit_code == 0
    assert call(cli.runs, "--db", path).stdout == "no runs\n"


@pytest.mark.parametrize("command", [cli.runs, cli.rebuild, cli.migrate], ids=lambda command: command.name)
@pytest.mark.parametrize("kind", ["missing", "text", "folder", "newer", "unsupported"])
def test_a_ledger_that_cannot_be_used_is_one_line_and_nothing_changes(call, path, tmp_path, plain, command, kind):
    target = tmp_path / kind
    match kind:
        case "text":
            target.write_text("no database")
        case "folder":
            target.mkdir()
        case "newer":
            plain().execute("UPDATE alembic_version SET version_num = '0099'")
            target = path
        case "unsupported":
            target = "postgresql://localhost/runs"
    before = sorted(file.name for file in tmp_path.iterdir())
    result = call(command, "--db", target)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Error: ")
    assert sorted(file.name for file in tmp_path.iterdir()) == before


def test_without_a_ledger_named_the_usage_says_so(call):
    result = call(cli.runs)
    assert result.exit_code == 2
    assert "--db" in result.stderr


def test_erasing_asks_says_what_went_and_then_that_nothing_is_left(call, recorded):
    where = ("session-0/run-0", "--db", recorded, "--actor", "dpo-1")
    assert call(cli.erase, *where, "--dry-run").stdout == "would erase 6 contents (94 bytes) of 1 run\n"
    refused = call(cli.erase, *where)
    assert (refused.exit_code, refused.stdout) == (1, "")
    done = call(cli.erase, *where, "--yes")
    assert done.stdout.startswith("erased 6 contents (94 bytes) of 1 run: gone from the tables and their files (")
    again = call(cli.erase, *where)
    assert (again.exit_code, again.stdout) == (0, "nothing is left to erase\n")
    assert "The disk is full." not in call(cli.show, "session-0/run-0", "--db", recorded).stdout
    assert "erasure.finished" in call(cli.system, "--db", recorded).stdout


def test_erasing_what_is_not_there_is_told_in_one_line(call, recorded):  # CASES 45
    for args, line in (
        (["session-1/run-0"], "there is no run run-0 in session session-1"),
        (["--session", "session-9"], "there is no session session-9"),
        (["--digest", "0" * 64], f"there is no content {'0' * 64}"),
    ):
        result = call(cli.erase, *args, "--yes", "--db", recorded)
        assert (result.exit_code, result.stderr) == (1, f"Error: {line}\n")
    for args in ([], ["run-0"], ["--digest", "x"], ["session-0/run-0", "--session", "session-0"]):
        result = call(cli.erase, *args, "--yes", "--db", recorded)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)


def test_nothing_unfinished_is_told_so(call, recorded):
    assert call(cli.erase, "--finish", "--db", recorded).stdout == "no erasure is unfinished\n"
    finished = json.loads(call(cli.erase, "--finish", "--db", recorded, "--json").stdout)
    assert finished == {"erasure_count": 0, "stage": None, "problem": None}


def test_retention_erases_what_is_old_enough(call, path):
    async def record():
        async with await Ledger.open(path) as ledger:
            for number, epoch_us in enumerate((0, 4_000_000_000_000_000)):
                for submission in ScriptedRun(f"run-{number}", epoch_us=epoch_us).whole():
                    ledger.journal.submit(submission).result()

    asyncio.run(record())
    planned = json.loads(call(cli.retention, "--older-than", "90d", "--dry-run", "--json", "--db", path).stdout)
    assert (planned["run_count"], planned["content_count"], planned["erasure_id"]) == (1, 6, None)
    done = json.loads(call(cli.retention, "--older-than", "90d", "--json", "--db", path).stdout)
    assert (done["run_count"], done["content_count"], done["stage"]) == (1, 6, "FILE")
    assert call(cli.retention, "--older-than", "90d", "--db", path).stdout == "nothing is left to erase\n"
    for age in ("90", "d", "-1d", "90y", "9999999999d"):
        result = call(cli.retention, "--older-than", age, "--db", path)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
