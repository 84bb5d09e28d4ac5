"""Addresses on the style guide: what leads to a run elsewhere leads nowhere here, since there is no such run."""

from viewer.site import Site


class GuideSite(Site):
    """The viewer's own addresses, but for those of runs."""

    __slots__ = ()

    def run(self, session_id: str, run_id: str, **query: str | int | None) -> str:
        """The guide itself."""
        return self.guide()

    def session(self, session_id: str, **query: str | int | None) -> str:
        """The guide itself."""
        return self.guide()

    def event_api(self, session_id: str, run_id: str, seq: int) -> str:
        """The guide itself."""
        return self.guide()
