"""Spans gathered into groups: nodes of the graph and nested scopes, each with what lies inside it right behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from viewer.present.scopes import Scope, Scopes, key_of, place
from viewer.present.spans import Span


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


Key = tuple[str, ...]
_OUTSIDE = "\0\0"
"""Before the number of a stretch of spans that lie in no group."""


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


def gather(spans: Sequence[Span], scopes: Scopes) -> list[Gathered]:
    """The groups by their first start; what lies outside of any is grouped only with its neighbours."""
    by_key = {key_of(scope): scope for scope in scopes.values()}
    groups: dict[Key, _Group] = {(): _Group("", None)}
    stretch, was_outside = 0, False
    for start_us, end_us, key, span in _members(spans, scopes):
        stretch += was_outside and bool(key)
        was_outside = not key
        whole = key or (f"{_OUTSIDE}{stretch}",)
        for depth, last in enumerate(whole):
            prefix = whole[: depth + 1]
            if prefix not in groups:
                scope = by_key.get(last)
                label = scope.label if scope is not None else "" if last.startswith(_OUTSIDE) else last
                groups[prefix] = _Group(label, scope)
                groups[prefix[:-1]].items.append(groups[prefix])
            groups[prefix].times.append((start_us, end_us))
        if span is not None:
            groups[whole].items.append(span)
    return [part for group in groups[()].items if isinstance(group, _Group) for part in group.listed(0)]


def _members(spans: Sequence[Span], scopes: Scopes) -> list[tuple[int, int | None, Key, Span | None]]:
    """All that takes time, by its start: the scopes themselves too, each before what lies in it."""
    members: list[tuple[int, int | None, Key, Span | None]] = [
        (scope.start_us, scope.end_us, (*place(scopes, scope.path, scope.parent_id), key_of(scope)), None)
        for scope in scopes.values()
    ]
    members += [(span.start_us, span.end_us, span.place, span) for span in spans]
    return sorted(members, key=lambda member: member[0])
