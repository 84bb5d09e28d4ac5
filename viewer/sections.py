"""The parts of the viewer that every page leads to."""

from collections.abc import Callable
from dataclasses import dataclass

from viewer.access.principal import Principal
from viewer.access.rights import Right
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
    needs: Right = Right.READ
    is_for_all: bool = False
    """Whether it is refused to whoever is limited to some sessions."""

    def is_open_to(self, principal: Principal | None) -> bool:
        """Whether he is let in; None where nobody was asked who he is."""
        if principal is None:
            return True
        return self.needs in principal.rights and not (self.is_for_all and principal.session_prefix is not None)


SECTIONS = (
    Section("home", N_("Home"), "h", Site.home),
    Section("runs", "Runs", "r", Site.runs),
    Section("sessions", "Sessions", "s", Site.sessions),
    Section("audit", N_("Audit"), "a", Site.audit, needs=Right.AUDIT, is_for_all=True),
)
