"""The command `tachograph`: a group that collects each package's commands by entry point.

A command is loaded when it is asked for, so that one broken package breaks only its own command. What goes wrong is
one line on the error stream; exit code 1 says that the thing asked for failed or is not there, 2 that it could not be
tried: wrong usage, or a ledger that cannot be read; 130 that it was interrupted, and says nothing.
"""

import errno
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any

import click

from harness.errors import HarnessError, InvalidInput
from ledger.errors import LedgerError, LedgerFileError
from viewer.logs import FORMATS, LEVELS, configure_logs

GROUP = "tachograph.commands"

INTERRUPTED = 130
"""As shells report a program that was stopped by Ctrl-C."""

_NOT_TRIED = (InvalidInput, LedgerFileError)
_ASKED_WRONGLY = {"unsupported_url", "invalid_cursor"}


class OneLine(click.ClickException):
    """What was asked for failed or is not there; one line on the error stream."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class NotTried(OneLine):
    """It could not be tried."""

    exit_code = 2


class Commands(click.Group):
    """Commands found by entry point."""

    def __init__(self, *args: Any, found: Callable[[], Iterable[EntryPoint]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._found = found

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, without loading anything."""
        return sorted({point.name for point in self._found()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or one that says why it cannot be loaded."""
        point = next((point for point in self._found() if point.name == cmd_name), None)
        if point is None:
            return None
        try:
            command = point.load()
        except Exception as error:  # noqa: BLE001 -- whatever a foreign package raises when it is imported
            return _broken(cmd_name, f"{point.value} cannot be loaded ({type(error).__name__}: {error})")
        if not isinstance(command, click.Command):
            return _broken(cmd_name, f"{point.value} is no command")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run, and tell in one line what our packages raise."""
        try:
            return super().invoke(ctx)
        except (LedgerError, HarnessError) as error:
            not_tried = isinstance(error, _NOT_TRIED) or error.code in _ASKED_WRONGLY
            raise (NotTried if not_tried else OneLine)(str(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click ends quietly where nobody reads any more
            raise OneLine(error.strerror or type(error).__name__) from error
        except (KeyboardInterrupt, click.Abort) as error:
            click.echo("Interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from error


def _broken(name: str, problem: str) -> click.Command:
    def refuse(**_: Any) -> None:
        raise NotTried(f"{name}: {problem}")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, short_help=f"(broken: {problem})", context_settings=settings)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    try:
        number = version("tachograph")
    except PackageNotFoundError:
        number = "(not installed)"
    click.echo(f"tachograph {number}")
    ctx.exit()


def build(found: Callable[[], Iterable[EntryPoint]]) -> Commands:
    """The group over the given entry points."""
    version_option = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version.",
    )
    log_format = click.Option(
        ["--log-format"],
        type=click.Choice(FORMATS),
        default="text",
        envvar="TACHOGRAPH_LOG_FORMAT",
        show_default=True,
        show_envvar=True,
        help="How the error stream's log lines look.",
    )
    log_level = click.Option(
        ["--log-level"],
        type=click.Choice(LEVELS),
        default="warning",
        envvar="TACHOGRAPH_LOG_LEVEL",
        show_default=True,
        show_envvar=True,
        help="From which level on our own packages log; no level logs what runs hold.",
    )
    return Commands(
        "tachograph",
        found=found,
        help="Read and serve the record of AI agent runs.",
        params=[version_option, log_format, log_level],
        callback=configure_logs,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


main = build(lambda: entry_points(group=GROUP))
