"""What is set, and where: the command line wins over the environment, that over the file, that over the defaults.

Everything is checked at once, before anything is opened; each problem says where the value came from, and none quotes a
secret.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from demo.errors import DemoError
from demo.options import OPTIONS, Option

FILE_ENV: Final = "TACHOGRAPH_CONFIG"
FILE_BYTES_MAX: Final = 64 * 1024
NOT_SET: Final = "not set"
HIDDEN: Final = "***"


class BadConfiguration(DemoError):
    """Some of what is set cannot be used; `problems` are all of them, one line each."""

    code = "bad_configuration"

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True)
class Given:
    """The value of one option, and who gave it."""

    option: Option
    text: str | None
    value: Any
    origin: str

    @property
    def shown(self) -> str:
        """The value as anybody may see it: without a secret, and without the password in an address."""
        if self.text is None:
            return NOT_SET
        return HIDDEN if self.option.is_secret else without_password(self.text)


class Configuration(Mapping[str, Any]):
    """The values by name; None where there is none."""

    def __init__(self, given: Mapping[str, Given]) -> None:
        self.given = given

    def __getitem__(self, name: str) -> Any:
        return self.given[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


def read_configuration(
    flags: Mapping[str, str | None], environ: Mapping[str, str], file: Path | None = None, *, only: tuple[str, ...] = ()
) -> Configuration:
    """What holds of all that is said; `BadConfiguration` with every problem. With `only`, other options are not read.

    `flags` are by the options' names. Without `file`, the one that TACHOGRAPH_CONFIG names, if it names any. What is
    empty is not set.
    """
    if file is None and environ.get(FILE_ENV):
        file = Path(environ[FILE_ENV])
    problems: list[str] = []
    in_file = {} if file is None else _read_file(file, problems)
    given: dict[str, Given] = {}
    for option in OPTIONS:
        if only and option.name not in only:
            continue
        text, origin = _origin(option, flags, environ, in_file, file)
        value = None
        try:
            value = None if text is None else option.parse(text)
        except ValueError as error:
            problems.append(f"{option.name} ({origin}): {error}")
        given[option.name] = Given(option, text, value, origin)
    if not only and given["openai_base_url"].text and not given["openai_model"].text:
        problems.append("OPENAI_BASE_URL is set; set OPENAI_MODEL to one of its models, too")
    if problems:
        raise BadConfiguration(tuple(problems))
    return Configuration(given)


def _origin(
    option: Option,
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
    in_file: Mapping[str, str],
    file: Path | None,
) -> tuple[str | None, str]:
    """The text that holds, and where it stands."""
    if flags.get(option.name):
        return flags[option.name], f"flag {option.flag}"
    if environ.get(option.env):
        return environ[option.env], f"environment {option.env}"
    if in_file.get(option.name):
        return in_file[option.name], f"file {file}"
    return option.default, "default"


def _read_file(file: Path, problems: list[str]) -> dict[str, str]:
    """What the file says, as texts; what is wrong with it is added to the problems."""
    try:
        with file.open("rb") as source:
            data = source.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise ValueError(f"is longer than {FILE_BYTES_MAX} bytes")
        found = tomllib.loads(data.decode())
    except tomllib.TOMLDecodeError as error:
        # Its message tells the place alone; a line could hold a secret.
        problems.append(f"file {file} is no TOML: {error}")
        return {}
    except (OSError, ValueError) as error:
        problems.append(f"file {file} cannot be read: {getattr(error, 'strerror', None) or error}")
        return {}
    names = [option.name for option in OPTIONS]
    texts: dict[str, str] = {}
    for name, value in found.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            problems.append(f"{name} (file {file}): is not known here" + (f"; {near[0]} is" if near else ""))
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            problems.append(f"{name} (file {file}): must be a text or a number")
        else:
            texts[name] = str(value)
    return texts


def without_password(given: str) -> str:
    """An address without user, password and query, where a password may stand as well; other texts are as they are."""
    try:
        url = urlsplit(given)
    except ValueError:
        return HIDDEN
    if not url.netloc:
        return given
    user, at, host = url.netloc.rpartition("@")
    return urlunsplit(
        (url.scheme, f"{HIDDEN if user else ''}{at}{host}", url.path, HIDDEN if url.query else "", url.fragment)
    )
