"""`python -m demo`: the demonstration; `serve`: the app, until it is stopped; `replay`: a recorded run, once more."""

# Ctrl-C must be quiet from the first moment on, so whatever takes time to import comes later.
import os
import signal
import sys

FAILED = 1


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 only if everything went as it should."""
    # Nothing is open yet; an exception would be told by whatever is just being imported.
    signal.signal(signal.SIGINT, _quit)
    signal.signal(signal.SIGTERM, _quit)
    from demo import options
    from demo.terminal import complain, give_up_unwritten, open_console

    given = options.parse(argv, __doc__)
    try:
        console = open_console()
        console.print("· starting", style="dim")
        from demo.commands import perform, replay

        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if given.command == "replay":
            return replay(console, given.run, data_folder=given.data, db=given.db)
        return perform(
            given.command, console, data_folder=given.data, log_folder=given.logs, db=given.db, port=given.port
        )
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
