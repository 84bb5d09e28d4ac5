"""Jinja2 with the two rules that keep content inert: everything is escaped, and nothing invisible stays so."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from ledger.words import codes as words
from ledger.words import format as form
from ledger.words.event_lines import boundary_words
from ledger.words.text import visible
from viewer.present import links
from viewer.present.gauges import columns
from viewer.present.text import breakable, prose, row_count, visible_markup
from viewer.present.verdict import TONES, pill


class Renderer:
    """Templates with the vocabulary they share."""

    def __init__(self) -> None:
        self.environment = Environment(
            loader=PackageLoader("viewer"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters.update(
            instant=form.instant,
            day_time=form.day_time,
            clock=form.clock,
            count=form.count,
            plural=form.plural,
            duration=form.duration,
            elapsed=form.elapsed,
            size=form.size,
            short_hash=form.short_hash,
            marked=visible_markup,
            prose=prose,
            breakable=breakable,
            row_count=row_count,
            pill=pill,
            plain=words.plain,
            boundary_words=boundary_words,
        )
        self.environment.globals.update(
            run_path=links.run_path,
            session_path=links.session_path,
            trace_api_path=links.trace_api_path,
            gauge_columns=columns,
            tone=lambda status: TONES.get(status, "bad"),
        )

    def page(self, name: str, context: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
        """A whole page."""
        text = self.environment.get_template(name).render(context)
        return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})


def _finalize(value: object) -> object:
    """What a template prints: text with its control and direction characters shown, markup as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
