"""How the events of nested scopes change the state of their run (SPEC D5)."""

from __future__ import annotations

from harness import events as e
from harness.errors import IllegalEvent
from harness.state.attempts import scope_ids_of
from harness.state.records import Refusal, RunState, ScopeState, observed_in


def opened(state: RunState, event: e.ScopeOpened) -> None:
    if event.scope_id in state.scopes:
        raise IllegalEvent(event.type, f"scope {event.scope_id} was opened before")
    around = scope_ids_of(state, event, event.parent_scope_id)
    scope = ScopeState(event.boundary, event.limits, (event.scope_id, *around), observed_in(event.limits))
    state.scopes = {**state.scopes, event.scope_id: scope}


def exhausted(state: RunState, event: e.ScopeExhausted) -> None:
    scope = _find(state, event)
    if scope.exhausted is not None:
        raise IllegalEvent(event.type, f"scope {event.scope_id} was exhausted before")
    refusal = Refusal(event.resource, event.used, event.limit)
    state.scopes = {**state.scopes, event.scope_id: scope._replace(exhausted=refusal)}


def closed(state: RunState, event: e.ScopeClosed) -> None:
    _find(state, event)
    inner = next((scope for scope in state.scopes.values() if event.scope_id in scope.scope_ids[1:]), None)
    if inner is not None:
        raise IllegalEvent(event.type, f"scope {inner.scope_ids[0]} inside it is open")
    state.scopes = {key: scope for key, scope in state.scopes.items() if key != event.scope_id}


def _find(state: RunState, event: e.ScopeEvent) -> ScopeState:
    scope = state.scopes.get(event.scope_id)
    if scope is None or scope.boundary != event.boundary:
        raise IllegalEvent(event.type, f"scope {event.scope_id} at {event.boundary} is not open")
    return scope
