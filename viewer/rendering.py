"""Jinja2 with the two rules that keep content inert: everything is escaped, and nothing invisible stays so."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from jinja2 import PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ledger.words import codes
from ledger.words import format as form
from ledger.words.event_lines import boundary_words
from ledger.words.text import visible
from viewer import words
from viewer.access.forms import csrf_field
from viewer.access.principal import principal_in
from viewer.present.text import apart, breakable, moment, prose, row_count, told, visible_markup
from viewer.present.trace.gauges import columns
from viewer.present.trace.verdict import TONES, pill
from viewer.printing import PrintingEnvironment
from viewer.sections import SECTIONS
from viewer.site import Site
from viewer.theme import CHOICES, theme_of


class Renderer:
    """Templates with the vocabulary they share."""

    def __init__(self, site: Site, style_version: str = "") -> None:
        self.site = site
        self.environment = PrintingEnvironment(
            loader=PackageLoader("viewer"),
            # The templates of a program that runs do not change.
            auto_reload=False,
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.i18n"],
        )
        # Not installed by the extension's own way, which looks each message up through three calls and two contexts.
        self.environment.newstyle_gettext = True  # type: ignore[attr-defined]
        self.environment.filters.update(
            instant=form.instant,
            apart=apart,
            moment=moment,
            told=told,
            clock=form.clock,
            count=form.count,
            plural=form.plural,
            duration=form.duration,
            elapsed=form.elapsed,
            size=form.size,
            short_hash=form.short_hash,
            marked=visible_markup,
            visible=visible,
            prose=prose,
            breakable=breakable,
            row_count=row_count,
            pill=pill,
            plain=codes.plain,
            boundary_words=boundary_words,
        )
        self.environment.globals.update(
            _=words.printed,
            gettext=words.printed,
            ngettext=words.printed_for,
            site=site,
            themes=CHOICES,
            style_version=style_version,
            gauge_columns=columns,
            language=words.language,
            tone=lambda status: TONES.get(status, "bad"),
        )

    def page(self, request: Request, name: str, context: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
        """A whole page, for whoever asks."""
        principal = principal_in(request.scope)
        shared = {
            "request": request,
            "theme": theme_of(request),
            "address": self._address(request, status),
            "principal": principal,
            "sections": [section for section in SECTIONS if section.is_open_to(principal)],
            "csrf_field": partial(csrf_field, principal),
        }
        text = self.environment.get_template(name).render({**shared, **context})
        return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})

    def _address(self, request: Request, status: int) -> str:
        """Of the page itself; of what was not found it says nothing, so that all of it looks alike."""
        if status != 200:
            return self.site.home()
        return f"{request.url.path}{'?' + request.url.query if request.url.query else ''}"
