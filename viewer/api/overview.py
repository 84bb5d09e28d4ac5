"""What runs now and what ended lately, by agent, and which runs to look at first."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from harness.clock import WallClock
from ledger.lists import AgentTally
from ledger.words.format import instant
from viewer.access.routes import GuardedRoute, Right
from viewer.api import overview_shapes as shapes
from viewer.api.bodies import camel, line_body
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Parameter
from viewer.reading import Reader

WINDOW = Parameter(
    "window",
    Annotated[str, Field(json_schema_extra={"enum": [each.name for each in queries.WINDOWS]})],
    f"How far back to look; {queries.WINDOW_DEFAULT} unless another is given.",
)


class Overview:
    """One JSON endpoint over one reader."""

    def __init__(self, reader: Reader, clock: WallClock) -> None:
        self.reader = reader
        self.clock = clock

    @property
    def routes(self) -> list[GuardedRoute]:
        return [
            GuardedRoute(
                "/api/diagnosis/overview",
                self.overview,
                needs=Right.READ,
                shows_content=True,
                described=Described(answer=shapes.Overview, query=(WINDOW,)),
            )
        ]

    async def overview(self, request: Request) -> Response:
        """Of the runs that were started within `window`, and of those that are running."""
        window = queries.window_in_query(request)
        tallies = await self.reader.tallies(window.since_us(self.clock.now_us()))
        body: shapes.Overview = {
            "window": window.name,
            "runCount": tallies.run_count,
            "cut": tallies.is_cut,
            "agents": [agent_body(each) for each in tallies.agents],
            "attention": [{"reason": each.reason, "run": line_body(each.run)} for each in tallies.attention],
        }
        return wrapper.ok(body)


def agent_body(tally: AgentTally) -> shapes.AgentTally:
    """The runs of one version of an agent."""
    return {
        "agent": tally.agent,
        "agentVersion": tally.agent_version,
        "runCount": tally.run_count,
        "byStatus": dict(tally.by_status),
        "degraded": tally.degraded,
        "refusals": camel(tally.refusals),
        "hiddenRetries": tally.hidden_retries,
        "spends": [
            {
                "resource": spend.resource,
                "observed": spend.is_observed,
                "used": spend.used,
                "unknownCount": spend.unknown_count,
                "highestShare": spend.highest_share,
                "runCount": spend.run_count,
            }
            for spend in tally.spends
        ],
        "costMicros": dict(tally.cost_micros),
        "costUnknown": dict(tally.cost_unknown),
        "newestAt": instant(tally.newest_us),
    }
