"""The parts of the viewer that every page leads to."""

from collections.abc import Callable
from dataclasses import dataclass

from viewer.site import Site
from viewer.words import N_


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the head of every page; a template says where it stands by `{% set here = NAME %}`."""

    name: str
    title: str
    key: str
    """After `g`, on the keyboard."""
    address: Callable[[Site], str]


SECTIONS = (
    Section("home", N_("Home"), "h", Site.home),
    Section("runs", "Runs", "r", Site.runs),
    Section("sessions", "Sessions", "s", Site.sessions),
    Section("audit", N_("Audit"), "a", Site.audit),
)
