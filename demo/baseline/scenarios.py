"""The fixed set of questions, each about a machine of its own, of which the seed makes the incidental facts anew.

What is wrong with a machine is known here and to the measuring alone: no file and no name says it. The offline model's
rules were written looking at seeds 1 to 5, and some wordings were added after the rules and not shown to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from demo.baseline import resource_faults, service_faults
from demo.baseline.draw import Draw
from demo.baseline.machine import Machine, healthy_machine
from demo.baseline.noise import add_red_herrings, add_routine

QUESTIONS = (
    "{service} has been answering with errors or too late since about {time}. What is the cause?",
    "Users say that {service} does not work as it should. Why?",
    "What is wrong with this machine? Customers complain since {time}.",
    "Find the root cause of the trouble with {service}.",
)
PER_CAUSE = 3


@dataclass(frozen=True, slots=True)
class Truth:
    """What is wrong, as only the measuring knows it."""

    cause: str
    culprits: tuple[str, ...]
    """An answer that is right names one of them; none where there is nothing to name."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One question, and the machine it is about."""

    number: int
    question: str
    machine: Machine
    truth: Truth


def _nothing(machine: Machine) -> tuple[str, ...]:
    """A healthy machine, which people ask about all the same."""
    return ()


FAULTS: tuple[tuple[str, Callable[[Machine], tuple[str, ...]]], ...] = (
    ("disk full", resource_faults.disk_full),
    ("memory leak", resource_faults.memory_leak),
    ("connection pool exhausted", service_faults.pool_exhausted),
    ("certificate expired", service_faults.certificate_expired),
    ("clock skew", resource_faults.clock_skew),
    ("noisy neighbour", resource_faults.noisy_neighbour),
    ("bad deploy", service_faults.bad_deploy),
    ("DNS failure", service_faults.names_unresolved),
    ("nothing is wrong", _nothing),
)
SCENARIO_COUNT = len(FAULTS) * PER_CAUSE


def scenarios(seed: int) -> tuple[Scenario, ...]:
    """All of them; the order in which the faults come is drawn, too."""
    order = Draw(seed, "order").some([fault for fault in FAULTS for _ in range(PER_CAUSE)], SCENARIO_COUNT)
    return tuple(_scenario(seed, number, *fault) for number, fault in enumerate(order, start=1))


def _scenario(seed: int, number: int, cause: str, fault: Callable[[Machine], tuple[str, ...]]) -> Scenario:
    draw = Draw(seed, number)
    machine = healthy_machine(draw)
    add_routine(machine)
    add_red_herrings(machine, draw.between(2, 4))
    culprits = fault(machine)
    since = machine.now - timedelta(minutes=draw.between(10, 40))
    question = QUESTIONS[number % len(QUESTIONS)].format(service=machine.service, time=f"{since:%H:%M}")
    return Scenario(number, question, machine, Truth(cause, culprits))
