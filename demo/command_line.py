"""What the command line may say."""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from demo.configuration import FILE_ENV
from demo.options import OPTIONS, Option

COMMANDS = {
    "run": "the demonstration: two questions and a check of the machine (the default)",
    "serve": "the app, until it is stopped",
    "replay": "execute a recorded run again, offline, and compare",
    "baseline": "measure the answers on machines with known faults; see baseline --help",
    "config": "what is set, and where each value comes from",
}
HOW = f"""commands:
{chr(10).join(f"  {name:<8} {about}" for name, about in COMMANDS.items())}

Each setting is taken from the command line, else from the environment, else from the file of --config, else it has its
default. In the file it is a line such as `port = 8000`. A key is a secret: set it in the environment or in the file."""


def parse(argv: list[str] | None, about: str | None) -> Namespace:
    """The command and `flags`, what is set by name; wrong usage ends the program with code 2."""
    parser = ArgumentParser(
        prog="python -m demo", description=about, epilog=HOW, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=COMMANDS, default="run", metavar="COMMAND", help="see below")
    parser.add_argument("run", nargs="?", metavar="SESSION/RUN", help="the run to replay")
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"file of settings, in TOML [{FILE_ENV}]")
    settings = parser.add_argument_group("settings", "by flag, [environment variable] and (default)")
    for option in OPTIONS:
        if not option.is_secret:
            metavar = option.name.rpartition("_")[2].upper()
            settings.add_argument(option.flag, dest=option.name, metavar=metavar, help=_help(option))
    given = parser.parse_args(argv)
    if (given.command == "replay") != (given.run is not None) or "/" not in (given.run or "/"):
        parser.error("replay takes the run as SESSION/RUN, and no other command does")
    if given.command == "baseline":
        parser.error("baseline comes first: it has options of its own")
    given.flags = {option.name: getattr(given, option.name, None) for option in OPTIONS}
    return given


def _help(option: Option) -> str:
    default = f" ({option.default})" if option.default else ""
    return f"{option.about} [{option.env}]{default}"
