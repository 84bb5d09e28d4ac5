"""What a run must come to, worked out by hand: a second opinion that shares no code with the harness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

Tokens = tuple[int | None, int | None]
"""Input and output tokens of an attempt, None where they are unknown."""
Call = tuple[str, int]

SETTLED = {"input_tokens", "output_tokens", "total_tokens", "cost_micros"}
"""What is known only after the work that it was spent on."""

IN_MICROS, OUT_MICROS = 1, 2
"""What one token costs."""


def priced(tokens: Tokens) -> dict[str, int]:
    """What is known of tokens, their total and their cost."""
    known = {
        name: count for name, count in zip(("input_tokens", "output_tokens"), tokens, strict=True) if count is not None
    }
    amounts = dict(known)
    if known:
        amounts["total_tokens"] = sum(known.values())
    if len(known) == 2:
        amounts["cost_micros"] = known["input_tokens"] * IN_MICROS + known["output_tokens"] * OUT_MICROS
    return amounts


@dataclass(eq=False)
class Account:
    """A run, or a nested scope in it."""

    name: str | None
    enforced: dict[str, int]
    observed: dict[str, int]
    until_s: int
    around: Account | None = None
    spent: Counter[str] = field(default_factory=Counter)
    held: dict[int, dict[str, int]] = field(default_factory=dict)
    """Estimates, by attempt."""
    calls: Counter[Call] = field(default_factory=Counter)
    usage_unknown: int = 0
    cost_unknown: int = 0
    is_exhausted: bool = False
    is_left: bool = False

    def chain(self) -> list[Account]:
        """It and what is around it, the outermost first."""
        return [*(self.around.chain() if self.around else ()), self]

    def used(self) -> Counter[str]:
        used = Counter(self.spent)
        for estimate in self.held.values():
            used.update(estimate)
        return used

    def limit(self, resource: str, kind: dict[str, int]) -> int | None:
        if resource in kind:
            return kind[resource]
        other = self.observed if kind is self.enforced else self.enforced
        is_tool = resource.startswith("tool:")
        return kind.get("tool_default") if is_tool and resource not in other else None

    def refuses(self, asked: dict[str, int], call: Call | None = None) -> bool:
        used = self.used()
        passed = [
            resource
            for resource, amount in asked.items()
            if (limit := self.limit(resource, self.enforced)) is not None and used[resource] + amount > limit
        ]
        return bool(passed) or self.repeats(call, self.enforced)

    def repeats(self, call: Call | None, kind: dict[str, int]) -> bool:
        return call is not None and "repeated_calls" in kind and self.calls[call] >= kind["repeated_calls"]

    def told(self, asked: dict[str, int], call: Call | None = None) -> set[tuple[str | None, str]]:
        """The observed limits that would have refused."""
        used, found = self.used(), set()
        for resource in {*used, *asked}:
            limit, amount = self.limit(resource, self.observed), asked.get(resource, 0)
            would = used[resource] + amount if amount else self.spent[resource]
            is_heard_of = amount or resource in SETTLED
            if limit is not None and is_heard_of and would > limit:
                found.add((self.name, resource))
        if call is not None and self.repeats(call, self.observed):
            found.add((self.name, f"repeat:{call[0]}"))
        return found

    def is_overrun(self) -> bool:
        return any(
            used > limit
            for resource, used in self.spent.items()
            if (limit := self.limit(resource, self.enforced)) is not None
        )


@dataclass(eq=False)
class Attempt:
    number: int
    account: Account
    is_model: bool
    on_thread: bool
    state: str = "open"
    """`open`, `abandoned` or `over`."""


class Model:
    """One run with its scopes and attempts. Every method says what must happen, and lets it happen here."""

    def __init__(self, enforced: dict[str, int], observed: dict[str, int], timeout_s: int) -> None:
        self.now_s = 0
        self.outcome: str | None = None
        self.run = Account(None, enforced, observed, timeout_s)
        self.accounts = [self.run]
        self.attempts: list[Attempt] = []

    def open_scope(self, around: Account, enforced: dict[str, int], observed: dict[str, int], timeout_s: int) -> str:
        if (problem := self.check(around)) != "":
            return problem
        name = f"s{len(self.accounts)}"
        self.accounts.append(Account(name, enforced, observed, self.now_s + timeout_s, around))
        return ""

    def leave_scope(self, account: Account) -> None:
        if self.outcome is None:
            for inner in self.accounts:
                inner.is_left |= account in inner.chain()

    def check(self, account: Account) -> str:
        """The error of a boundary that asks for nothing, or ''."""
        if self.outcome is None and self.now_s >= self.run.until_s:
            self.stop("TIMED_OUT")
        return self._ended(account) or self._late(account)

    def start(self, account: Account, asked: dict[str, int], call: Call | None, attempt: Attempt) -> str:
        is_late = self.outcome is None and self.now_s >= self.run.until_s
        if not is_late and (problem := self._ended(account)):
            return problem
        for each in account.chain():
            if self.now_s >= each.until_s:
                return self._refuse(each, "TIMED_OUT")
            if each.refuses(asked, call):
                return self._refuse(each, "BUDGET_EXHAUSTED")
        for each in account.chain():
            if call is not None:
                each.calls[call] += 1
            estimate = {name: amount for name, amount in asked.items() if "tokens" in name or "cost" in name}
            each.held[attempt.number] = estimate
            each.spent.update({name: amount for name, amount in asked.items() if name not in estimate})
        self.attempts.append(attempt)
        return ""

    def reserve(self, account: Account, size: int, *, ends: bool) -> str:
        if (problem := self.check(account)) != "":
            return problem
        for each in account.chain():
            if each.refuses({"run_bytes": size}):
                return self._refuse(each, "BUDGET_EXHAUSTED") if ends else "CapacityExceeded"
        for each in account.chain():
            each.spent["run_bytes"] += size
        return ""

    def told(self, account: Account, asked: dict[str, int], call: Call | None = None) -> set[tuple[str | None, str]]:
        return set().union(*(each.told(asked, call) for each in account.chain()))

    def end(self, attempt: Attempt, tokens: Tokens) -> None:
        """It ended in time, or late."""
        was_late, attempt.state = attempt.state == "abandoned", "over"
        if attempt.is_model:
            self._count_unknown(attempt, -1, -1) if was_late else None
            self._settle(attempt, tokens)
        for each in attempt.account.chain():
            if each is not self.run and (self.outcome is not None or each.is_left):
                return
            if each.is_overrun():
                if each is self.run:
                    self.stop("BUDGET_EXHAUSTED")
                else:
                    each.is_exhausted = True
                return

    def let_go(self, attempt: Attempt) -> None:
        """Nobody waits for it any more."""
        if not attempt.on_thread:
            self.end(attempt, (None, None))
            return
        attempt.state = "abandoned"
        if attempt.is_model:
            self._count_unknown(attempt, 1, 1)

    def stop(self, outcome: str) -> None:
        """The run ends, and what is in flight is let go."""
        if self.outcome is None:
            self.outcome = outcome
            self.let_go_all()

    def let_go_all(self) -> None:
        for attempt in self.attempts:
            if attempt.state == "open":
                self.let_go(attempt)

    def finish(self, outcome: str) -> bool:
        if self.outcome is not None:
            return False
        if outcome == "SUCCESS" and self.now_s >= self.run.until_s:
            self.stop("TIMED_OUT")
            return False
        self.outcome = outcome
        return True

    def _ended(self, account: Account) -> str:
        if self.outcome is not None:
            return "RunEnded"
        for each in account.chain():
            if each.is_left or each.is_exhausted:
                return "ScopeNotOpen" if each.is_left else "ScopeExhausted"
        return ""

    def _late(self, account: Account) -> str:
        late = [each for each in account.chain() if self.now_s >= each.until_s]
        return self._refuse(late[0], "TIMED_OUT") if late else ""

    def _refuse(self, account: Account, outcome: str) -> str:
        if account is self.run:
            self.stop(outcome)
            return "RunEnded"
        account.is_exhausted = True
        return "ScopeExhausted"

    def _settle(self, attempt: Attempt, tokens: Tokens) -> None:
        for each in self._still_charged(attempt):
            estimate = each.held.pop(attempt.number)
            parts = [
                estimate.get(name) if known is None else known
                for name, known in zip(("input_tokens", "output_tokens"), tokens, strict=True)
            ]
            amounts = priced((parts[0], parts[1]))
            cost = priced(tokens).get("cost_micros", estimate.get("cost_micros"))
            each.spent.update({name: amount for name, amount in amounts.items() if name != "cost_micros"})
            each.spent.update({"cost_micros": cost} if cost is not None else {})
        is_unknown = int(None in tokens)
        self._count_unknown(attempt, is_unknown, is_unknown)

    def _count_unknown(self, attempt: Attempt, usage: int, cost: int) -> None:
        for each in self._still_charged(attempt):
            each.usage_unknown += usage
            each.cost_unknown += cost

    def _still_charged(self, attempt: Attempt) -> Iterable[Account]:
        return [each for each in attempt.account.chain() if not each.is_left]
