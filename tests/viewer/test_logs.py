"""Log lines have one form, and hold no words of exceptions, which may quote what a run holds."""

import io
import json
import logging

import click
import pytest
from click.testing import CliRunner

from viewer.cli import build
from viewer.logs import OURS, configure_logs


@pytest.fixture(autouse=True)
def left_as_found():
    loggers = [logging.getLogger(name) for name in ("", *OURS)]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def logged(log_format, level, log):
    stream = io.StringIO()
    configure_logs(log_format, level, stream)
    log()
    return stream.getvalue().splitlines()


def fail():
    try:
        raise ValueError("the password is hunter2")
    except ValueError:
        logging.getLogger("ledger.append.writer").exception("the writer of %s failed", "run-1")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_an_exception_is_logged_by_type_and_place_and_never_by_its_words(log_format):  # E10
    (line,) = logged(log_format, "debug", fail)
    assert "hunter2" not in line
    assert all(part in line for part in ("the writer of run-1 failed", "ValueError", "fail test_logs.py:"))


def test_a_line_of_json_has_what_a_program_looks_for():
    (line,) = logged("json", "info", lambda: logging.getLogger("viewer.app").info("two\nlines"))
    fields = json.loads(line)
    assert (fields["level"], fields["logger"], fields["message"]) == ("info", "viewer.app", "two\nlines")
    assert fields["time"].endswith("Z")


def test_a_line_of_text_is_one_line():
    (line,) = logged("text", "info", lambda: logging.getLogger("viewer.app").info("two\nlines\x1b"))
    assert line.endswith("info viewer.app: two lines\x1b".replace("\x1b", "?"))


@pytest.mark.parametrize("name", ["sqlalchemy.engine", "aiosqlite", "httpx", "asyncio", "uvicorn.access"])
def test_libraries_stay_at_warnings_whatever_our_level_is(name):
    assert logged("text", "debug", lambda: logging.getLogger(name).info("a row")) == []


def test_the_command_takes_level_and_format_before_its_subcommand():
    @click.command()
    def tell():
        logging.getLogger("ledger.cli").debug("told")

    class Point:
        name, value = "tell", "tests:tell"

        def load(self):
            return tell

    main = build(lambda: [Point()])
    assert "told" not in CliRunner().invoke(main, ["tell"]).stderr
    loud = CliRunner().invoke(main, ["--log-level", "debug", "--log-format", "json", "tell"])
    assert json.loads(loud.stderr)["message"] == "told"
    by_environment = CliRunner().invoke(main, ["tell"], env={"TACHOGRAPH_LOG_LEVEL": "debug"})
    assert "debug ledger.cli: told" in by_environment.stderr
