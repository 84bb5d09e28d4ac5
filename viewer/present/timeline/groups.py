"""Spans gathered into groups: nodes of the graph and nested scopes, each with what lies inside it right behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ledger.words.places import Place, place
from viewer.present.timeline.scopes import Scope
from viewer.present.timeline.spans import Span


@dataclass(slots=True)
class Gathered:
    """Spans that lie in one group and follow each other there."""

    label: str
    depth: int
    scope: Scope | None
    start_us: int
    end_us: int | None
    """Of the whole group with all that lies inside; None while anything in it is open."""
    is_continued: bool
    """Whether the group's beginning was listed before, and then something that lies inside it."""
    spans: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class _Group:
    label: str
    scope: Scope | None
    items: list[Span | _Group] = field(default_factory=list)
    times: list[tuple[int, int | None]] = field(default_factory=list)

    def listed(self, depth: int) -> Iterator[Gathered]:
        start_us, ends = min(start for start, _ in self.times), [end for _, end in self.times]
        end_us = None if None in ends else max(end for end in ends if end is not None)
        part = Gathered(self.label, depth, self.scope, start_us, end_us, is_continued=False)
        for item in self.items:
            if isinstance(item, Span):
                part.spans.append(item)
                continue
            if part.spans or not part.is_continued:
                yield part
            yield from item.listed(depth + 1)
            part = Gathered(self.label, depth, self.scope, start_us, end_us, is_continued=True)
        if part.spans or not part.is_continued:
            yield part


def gather(spans: Sequence[Span], scopes: Sequence[Scope]) -> list[Gathered]:
    """The groups by their first start; what lies outside of any is grouped only with its neighbours."""
    scope_at = {scope.place: scope for scope in scopes}
    groups: dict[Place, _Group] = {(): _Group("", None)}
    outside: _Group | None = None
    for start_us, end_us, at, span in _members(spans, scopes):
        if at:
            outside = None
        elif outside is None:
            outside = _Group("", None)
            groups[()].items.append(outside)
        for depth in range(len(at)):
            prefix = at[: depth + 1]
            if prefix not in groups:
                groups[prefix] = _Group(at[depth].label, scope_at.get(prefix))
                groups[prefix[:-1]].items.append(groups[prefix])
            groups[prefix].times.append((start_us, end_us))
        if span is not None:
            group = outside or groups[at]
            group.items.append(span)
            group.times += [(start_us, end_us)] if group is outside else []
    return [part for group in groups[()].items if isinstance(group, _Group) for part in group.listed(0)]


def _members(spans: Sequence[Span], scopes: Sequence[Scope]) -> list[tuple[int, int | None, Place, Span | None]]:
    """All that takes time, by its start: the scopes themselves too, each before what lies in it."""
    members: list[tuple[int, int | None, Place, Span | None]] = [
        (scope.start_us, scope.end_us, scope.place, None) for scope in scopes
    ]
    places = {path: place(path) for path in {span.scope for span in spans}}
    members += [(span.start_us, span.end_us, places[span.scope], span) for span in spans]
    return sorted(members, key=lambda member: member[0])
