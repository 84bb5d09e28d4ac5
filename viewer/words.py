"""The words of the pages, in the language that was chosen when the process began; as the source has them without one.

What varies in a message is a named parameter, so that another language can put it elsewhere: messages are not put
together from pieces. The words of `ledger.words` (outcomes, reasons, resources, events, units) are those of the command
line too, and stay English.
"""

import gettext as catalogues
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

from ledger.words.format import count

LOCALE = Path(__file__).parent / "locale"
DOMAIN = "tachograph"
MESSAGES_KEPT_MAX = 2_048
"""Of messages without facts; there are fewer in the templates."""

_catalogue = catalogues.NullTranslations()


def choose(language: str | None, folder: Path = LOCALE) -> None:
    """Take the catalogue `folder/LANGUAGE/LC_MESSAGES/tachograph.mo` for the whole process; None takes none.

    Raises `FileNotFoundError` where there is no such catalogue.
    """
    global _catalogue
    _unvarying.cache_clear()
    if not language:
        _catalogue = catalogues.NullTranslations()
        return
    _catalogue = catalogues.translation(DOMAIN, folder, [language])


def language() -> str:
    """Of the pages, for browsers and what reads aloud."""
    return _catalogue.info().get("language", "en")


def found(message: str) -> str:
    """The message as the catalogue has it, its parameters still to be filled in."""
    return _catalogue.gettext(message)


def found_for(one: str, many: str, number: int) -> str:
    """The same in the form that goes with the number."""
    return _catalogue.ngettext(one, many, number)


def gettext(message: str, /, **facts: object) -> str:
    """The message, with `%(name)s` replaced by its facts; without facts a `%` is just that."""
    return found(message) % facts if facts else found(message)


def ngettext(one: str, many: str, number: int, /, **facts: object) -> str:
    """The same in the form that goes with the number, which is `%(num)s` unless it is given."""
    return found_for(one, many, number) % {"num": count(number), **facts}


def printed(message: str, /, **facts: object) -> Markup:
    """As `gettext`, for templates: the message is markup, its facts are escaped, and a `%` is always `%%`."""
    return _markup(found(message)) % facts if facts else _unvarying(message)


def printed_for(one: str, many: str, number: int, /, **facts: object) -> Markup:
    """As `ngettext`, likewise; `%(num)s` is the bare number."""
    return _markup(found_for(one, many, number)) % {"num": number, **facts}


@lru_cache(MESSAGES_KEPT_MAX)
def _unvarying(message: str) -> Markup:
    return _markup(found(message)) % {}


def _markup(words: str) -> Markup:
    """Those of the source, or of its catalogue; no content of a run is among them."""
    return Markup(words)  # noqa: S704


def N_(message: str) -> str:
    """Marks a message that is translated where it is shown."""
    return message
