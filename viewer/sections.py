"""The parts of the site that every page's header leads to; a part that is new is added to `SECTIONS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewer.site import Site


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the site."""

    name: str
    """In English, as the catalogue of translations has it."""
    address: Callable[[Site], str]


SECTIONS: tuple[Section, ...] = (Section("Runs", Site.home),)
