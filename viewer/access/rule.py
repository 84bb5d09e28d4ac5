"""What one route asks of whoever wants it."""

from __future__ import annotations

from dataclasses import dataclass

from viewer.access.rights import Right
from viewer.access.sessions import About


@dataclass(frozen=True, slots=True)
class Rule:
    """As `viewer.access.routes.GuardedRoute` was told it."""

    action: str
    """What the route is called on record."""
    needs: Right
    shows_content: bool
    within_sessions: bool
    """Whether its answer is about no other sessions than those that the request names."""
    about: About = ()
    """The parameters that name the sessions and runs of which it shows something; none where it is all of them."""
    lists_sessions: bool = False
    """Whether it lists all sessions, or those that begin with the parameter `sessionPrefix`."""
    may_make: bool = False
    """Whether it may make what it names, as a route may of which nothing is known."""
    goes_on: bool = False
    """Whether its answer may go on for as long as its client likes."""
