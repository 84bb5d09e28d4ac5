"""Prices turn tokens into cost: whole micro-units of one currency, from one versioned table (SPEC H4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from harness.budget.usage import TokenUsage
from harness.errors import InvalidInput, UnpricedModel
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_code, check_name

MAX_PRICED_MODELS = 1_000
MAX_PRICE_MICROS = 10**12
"""A million units of the currency for a million tokens."""
TOKENS_PRICED = 1_000_000
"""The number of tokens that a price is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a million tokens of one model cost, in micro-units of the table's currency; 0 is free, not unknown.

    Three dollars are `3_000_000`.
    """

    input_micros_per_million: int
    output_micros_per_million: int

    def __post_init__(self) -> None:
        for name in ("input_micros_per_million", "output_micros_per_million"):
            value = getattr(self, name)
            bound = f"must be a whole number from 0 to {MAX_PRICE_MICROS}"
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidInput(f"price.{name}", f"{bound}, not {type(value).__name__}")
            if not 0 <= value <= MAX_PRICE_MICROS:
                raise InvalidInput(f"price.{name}", f"{bound}, not {value}")

    def cost_micros(self, usage: TokenUsage) -> int | None:
        """What one attempt cost, rounded up once; None, never 0, where a part of its usage is unknown."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        exact = (
            usage.input_tokens * self.input_micros_per_million + usage.output_tokens * self.output_micros_per_million
        )
        return min(-(-exact // TOKENS_PRICED), MAX_SAFE_INTEGER)


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices of models, as they were at one version of this table."""

    version: str
    """What every run records that is reckoned by it: another table needs another version."""
    currency: str
    """A code, such as `USD`."""
    prices: Mapping[str, Price]
    """By the name that is given as `model` of a model step."""
    unpriced: Literal["refuse", "allow"] = "refuse"
    """What becomes of a step whose model has no price: it is refused, or allowed and its cost unknown."""

    def __post_init__(self) -> None:
        check_name("prices.version", self.version)
        check_code("prices.currency", self.currency)
        if not isinstance(self.prices, Mapping):
            raise InvalidInput("prices.prices", f"must be a mapping, not {type(self.prices).__name__}")
        if len(self.prices) > MAX_PRICED_MODELS:
            raise InvalidInput(
                "prices.prices", f"must be of at most {MAX_PRICED_MODELS} models, not {len(self.prices)}"
            )
        for model, price in self.prices.items():
            check_name("prices.prices", model)
            if not isinstance(price, Price):
                raise InvalidInput(f"prices.prices[{model}]", f"must be a Price, not {type(price).__name__}")
        if self.unpriced not in ("refuse", "allow"):
            raise InvalidInput("prices.unpriced", f"must be 'refuse' or 'allow', not {self.unpriced!r}")
        object.__setattr__(self, "prices", MappingProxyType(dict(self.prices)))

    def check_priced(self, model: str | None) -> None:
        """Raise `UnpricedModel` if steps of `model`, None where no name was given, are refused."""
        if self.unpriced == "refuse" and model not in self.prices:
            raise UnpricedModel(model, version=self.version)

    def cost_micros(self, model: str | None, usage: TokenUsage) -> int | None:
        """The cost of an attempt, or None: unknown."""
        price = None if model is None else self.prices.get(model)
        return None if price is None else price.cost_micros(usage)


def usage_map(prices: PriceTable | None, model: str | None, usage: TokenUsage) -> dict[str, int]:
    """What is known of the tokens of an attempt, and of what they cost."""
    amounts = usage.as_map()
    cost_micros = None if prices is None else prices.cost_micros(model, usage)
    return amounts if cost_micros is None else {**amounts, "cost_micros": cost_micros}
