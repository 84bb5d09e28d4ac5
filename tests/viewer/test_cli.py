"""The command: commands by entry point, errors in one line, exit codes that mean something."""

import errno
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.errors import InvalidInput
from ledger.errors import LedgerMissing, RunNotFound
from viewer.cli import GROUP, build


@click.command()
@click.argument("what")
def works(what):
    """Works."""
    click.echo(f"worked on {what}")


def raising(error):
    @click.command()
    def command():
        raise error

    return command


not_found = raising(RunNotFound("s", "r"))
missing = raising(LedgerMissing(Path("x.db")))
invalid = raising(InvalidInput("runId", "must not\nbe blank"))
full = raising(OSError(errno.ENOSPC, "No space left on device"))
stopped = raising(KeyboardInterrupt())
no_command = "just a string"


def run(*args):
    names = ("works", "not_found", "missing", "invalid", "full", "stopped", "no_command", "gone")
    points = [EntryPoint(name.replace("_", "-"), f"{__name__}:{name}", GROUP) for name in names]
    points.append(EntryPoint("broken", "no_such_package.commands:main", GROUP))
    return CliRunner().invoke(build(lambda: points), args)


def test_a_command_is_found_by_its_entry_point():
    result = run("works", "this")
    assert (result.exit_code, result.stdout) == (0, "worked on this\n")


@pytest.mark.parametrize(
    ("command", "exit_code", "line"),
    [
        ("not-found", 1, "Error: there is no run r in session s\n"),
        ("missing", 2, "Error: x.db does not exist\n"),
        ("invalid", 2, "Error: runId must not be blank\n"),
        ("full", 1, "Error: No space left on device\n"),
        ("stopped", 130, "Interrupted\n"),
    ],
)
def test_what_our_packages_raise_is_one_line_and_an_exit_code(command, exit_code, line):
    result = run(command)
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", line)


@pytest.mark.parametrize("command", ["broken", "gone", "no-command"])
def test_a_broken_package_breaks_only_its_own_command_and_in_one_line(command):
    result = run(command, "--any", "argument")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"Error: {command}: ")


def test_help_lists_every_command_the_broken_ones_too():
    result = run("--help")
    assert result.exit_code == 0
    assert "works" in result.stdout
    assert "broken" in result.stdout


def test_an_unknown_command_is_wrong_usage():
    assert run("nonsense").exit_code == 2


def test_the_version_is_one_line():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("tachograph ")
    assert result.stdout.count("\n") == 1
