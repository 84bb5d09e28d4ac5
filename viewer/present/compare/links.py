"""Addresses of the states of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewer.present.compare.rows import Shown
from viewer.site import Site

Keys = tuple[str, str]
"""Session and run."""


@dataclass(frozen=True, slots=True)
class CompareLinks:
    """The state of a comparison's page; each method is the address of a neighbouring state."""

    site: Site
    a: Keys
    b: Keys
    shown: Shown = "folded"
    skipped: int = 0
    """Rows before the first of the page."""

    def showing(self, shown: Shown) -> str:
        """The same with other rows."""
        return replace(self, shown=shown, skipped=0)._path("boundaries")

    def rows_from(self, skipped: int) -> str:
        """Another page of the rows."""
        return replace(self, skipped=skipped)._path("boundaries")

    @property
    def swapped(self) -> str:
        """The second run first."""
        return replace(self, a=self.b, b=self.a, skipped=0)._path("")

    @property
    def api(self) -> str:
        """The comparison as JSON."""
        return self.site.compare_api(self.a, self.b)

    def event_of(self, side: Keys, seq: int) -> str:
        """An event in its run."""
        return f"{self.site.run(*side, event=seq, view='events')}#e{seq}"

    def _path(self, anchor: str) -> str:
        state = {
            "show": None if self.shown == "folded" else self.shown,
            "skip": self.skipped or None,
        }
        return f"{self.site.compare(self.a, self.b, **state)}{f'#{anchor}' if anchor else ''}"
