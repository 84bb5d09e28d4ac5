"""Spans gathered into groups: nodes of the graph and nested scopes, each with what lies inside it right behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from viewer.present.scopes import Scope, Scopes, key_of, place
from viewer.present.spans import Span


@dataclass(slots=True)
class Gathered:
    """A group and the spans that lie in it directly."""

    label: str
    depth: int
    scope: Scope | None
    spans: list[Span] = field(default_factory=list)
    times: list[tuple[int, int | None]] = field(default_factory=list)
    """Of these spans and of all groups inside."""

    @property
    def start_us(self) -> int:
        return min(start for start, _ in self.times)

    @property
    def end_us(self) -> int | None:
        """None while anything in it is open."""
        ends = [end for _, end in self.times]
        return None if None in ends else max(end for end in ends if end is not None)


Key = tuple[str, ...]


def gather(spans: Sequence[Span], scopes: Scopes) -> list[Gathered]:
    """The groups by their first start; what lies outside of any is grouped only with its neighbours."""
    by_key = {key_of(scope): scope for scope in scopes.values()}
    groups: dict[Key, Gathered] = {}
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
                groups[prefix] = Gathered(label, depth, scope)
            groups[prefix].times.append((start_us, end_us))
        if span is not None:
            groups[whole].spans.append(span)
    rank = {key: number for number, key in enumerate(groups)}
    return [groups[key] for key in sorted(groups, key=lambda key: [rank[key[: n + 1]] for n in range(len(key))])]


def _members(spans: Sequence[Span], scopes: Scopes) -> list[tuple[int, int | None, Key, Span | None]]:
    """All that takes time, by its start: the scopes themselves too, each before what lies in it."""
    members: list[tuple[int, int | None, Key, Span | None]] = [
        (scope.start_us, scope.end_us, (*place(scopes, scope.path, scope.parent_id), key_of(scope)), None)
        for scope in scopes.values()
    ]
    members += [(span.start_us, span.end_us, span.place, span) for span in spans]
    return sorted(members, key=lambda member: member[0])


_OUTSIDE = "\0\0"
"""Before the number of a stretch of spans that lie in no group."""
