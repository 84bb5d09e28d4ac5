"""Numbers, sizes, durations and instants, written the same way everywhere."""

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_VOWEL = re.compile(r"e|8|1[18](?!\d)")


def instant(epoch_us: int) -> str:
    """RFC 3339 in UTC with microseconds, as the API gives every time: `2026-11-30T01:14:07.378214Z`."""
    return f"{_at(epoch_us).isoformat(timespec='microseconds').removesuffix('+00:00')}Z"


def day_time(epoch_us: int) -> str:
    """For people, with the zone: `30 Nov 2026 01:14:07 UTC`."""
    at = _at(epoch_us)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year} {at:%H:%M:%S} UTC"


def clock(epoch_us: int) -> str:
    """Time of day with microseconds and the zone: `01:14:07.378214 UTC`."""
    return f"{_at(epoch_us):%H:%M:%S.%f} UTC"


def count(number: int) -> str:
    """A whole number with thousands separated."""
    return f"{number:,}"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 tool call`, `3 tool calls`; `nouns` where the plural is not noun + s."""
    return f"{count(number)} {noun if number == 1 else nouns or noun + 's'}"


def duration(us: int) -> str:
    """A length of time to three significant figures or to the second: `412 µs`, `317 ms`, `4.17 s`, `2 min 05 s`."""
    if us < 1_000:
        return f"{us} µs" if us else "0 s"
    if us < 999_500:
        return f"{round(us / 1_000)} ms"
    if us < 9_995_000:
        return f"{us / 1_000_000:.2f} s"
    if us < 59_950_000:
        return f"{us / 1_000_000:.1f} s"
    seconds = round(us / 1_000_000)
    if seconds < 3_600:
        return f"{seconds // 60} min" + (f" {seconds % 60:02d} s" if seconds % 60 else "")
    return f"{count(seconds // 3_600)} h" + (f" {seconds // 60 % 60:02d} min" if seconds // 60 % 60 else "")


def elapsed(us: int | None) -> str:
    """A point in the run in seconds after its start: `+4.171`; `after` for what the run's owner did not write."""
    return "after" if us is None else f"+{us / 1_000_000:,.3f}"


def size(size_bytes: int) -> str:
    """Bytes in decimal units: `812 bytes`, `48 kB`, `5.2 MB`."""
    if size_bytes < 1_000:
        return plural(size_bytes, "byte")
    value = float(size_bytes)
    for unit in ("kB", "MB", "GB"):
        value /= 1_000
        if value < 999.5 or unit == "GB":
            return f"{value:.1f} {unit}" if value < 9.95 else f"{round(value):,} {unit}"
    raise AssertionError("unreachable")


def money(micros: int) -> str:
    """Micro-units of a currency exactly, as its units: `0.0012`, `0.25`, `1,204.00`, `0`."""
    units, rest = divmod(micros, 1_000_000)
    return f"{count(units)}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}" if micros else "0"


def some(number: int, noun: str, nouns: str | None = None) -> str:
    """The same with small numbers in words: `one evidence repair`, `12 evidence repairs`."""
    return f"{spelled(number)} {noun if number == 1 else nouns or noun + 's'}"


def spelled(number: int) -> str:
    """A small number as a word, any other in figures."""
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else count(number)


def nth(number: int) -> str:
    """With its article: `a sixth`, `an eighth`, `an 11th`, `a 21st`."""
    if 0 <= number < len(_ORDINALS):
        word = _ORDINALS[number]
    else:
        suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
        word = f"{count(number)}{suffix}"
    return f"{'an' if _VOWEL.match(word) else 'a'} {word}"


def short_hash(digest: str) -> str:
    """Both ends of a long hexadecimal digest: `9f31c0…7be2`."""
    return digest if len(digest) <= 12 else f"{digest[:6]}…{digest[-4:]}"


def _at(epoch_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=epoch_us)
