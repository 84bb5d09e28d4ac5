"""A diagnosis agent for this machine, held to its limits, recorded, and shown."""

# Ctrl-C must be quiet from the first moment on, so whatever takes time to import comes later.
import os
import signal
import sys

FAILED = 1
UNUSABLE = 2
LEDGER_ONLY = ("data", "db")
"""The settings of a command that reads a ledger and serves nothing."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 only if everything went as it should."""
    # Nothing is open yet; an exception would be told by whatever is just being imported.
    signal.signal(signal.SIGINT, _quit)
    signal.signal(signal.SIGTERM, _quit)
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["baseline"]:
        from demo.baseline.command import perform_baseline

        return perform_baseline(arguments[1:])
    from demo import command_line
    from demo.configuration import BadConfiguration, read_configuration
    from demo.terminal import complain, give_up_unwritten, open_console, show_configuration

    said = command_line.parse(arguments, __doc__)
    try:
        only = LEDGER_ONLY if said.command == "replay" else ()
        given = read_configuration(said.flags, os.environ, said.config, only=only)
        console = open_console()
        if said.command == "config":
            show_configuration(console, given)
            return 0
        console.print("· starting", style="dim")
        from demo.commands import perform, replay
        from viewer.logs import configure_logs

        configure_logs("text", "warning")
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if said.command == "replay":
            return replay(console, said.run, given)
        return perform(said.command, console, given)
    except BadConfiguration as error:
        for problem in error.problems:
            complain(problem)
        return UNUSABLE
    except OSError as error:
        complain(error)
        return FAILED
    except KeyboardInterrupt:
        return _code_of(signal.SIGINT)
    finally:
        # It ends in any case.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        give_up_unwritten()


def _quit(number: int, frame: object) -> None:
    """End at once."""
    os._exit(_code_of(number))


def _stop(number: int, frame: object) -> None:
    """End as on an error, so that everything is closed."""
    raise SystemExit(_code_of(number))


def _code_of(number: int) -> int:
    """As shells report a program that was stopped by a signal."""
    return 128 + number


if __name__ == "__main__":
    sys.exit(main())
