"""Visits the states of a scenario: in a random order of a fixed seed, each distinct state once.

Every visited state is checked to converge (``convergence.py``), and every write of the operator on the way is checked
against the invariants (``invariants.py``).
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from support.stability import surroundings
from support.stability.convergence import Convergence
from support.stability.reconciler import Reconciler
from support.stability.scenarios import Scenario
from support.stability.state import State, Step, Violation

QUIET = "quiet step"
"""The next transition of the quiet closure: a reconcile that is due, or all pods' next step."""
LATE = ", then a reconcile that had read before it"


@dataclass(frozen=True, slots=True)
class Figures:
    """What an exploration has covered."""

    states: int
    """Distinct states visited; each was checked to converge."""
    expanded: int
    """Those of them of which every transition was taken."""
    transitions: int
    deepest: int
    """Transitions from the new job to the state that is furthest from it, on the path by which it was found."""
    longest: int
    """Reconciles of the longest quiet closure."""
    seconds: float
    """Processor time."""
    is_complete: bool
    """Whether the scenario has no other states."""


class Explorer:
    """Visits the states of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._reconciler = Reconciler(scenario)
        self._convergence = Convergence(scenario, self._reconciler)
        self._origins: dict[State, tuple[State, str] | None] = {}
        self._depths: dict[State, int] = {}

    def explore(self, states: int, seed: int = 0) -> Figures:
        """Visit up to ``states`` states. Raises :class:`Violation` with a short path from the new job to it."""
        began = time.process_time()
        chance = random.Random(f"{self._scenario.name} {seed}")
        frontier: list[State] = []
        transitions = expanded = 0
        self._visit(State(), None, frontier)
        while frontier and len(self._origins) < states:
            state = _take(frontier, chance)
            expanded += 1
            found: list[State] = []
            for label, step in self._steps(state):
                transitions += 1
                try:
                    after = step()
                    if after not in self._origins:
                        self._visit(after, (state, label), found)
                except Violation as violation:
                    raise self._explained(state, label, violation) from violation
            chance.shuffle(found)
            if chance.random() < 0.5:  # so that half of the paths' transitions are those of an undisturbed job
                found.sort(key=lambda one: self._origins[one] == (state, QUIET))
            frontier.extend(found)
        return Figures(
            states=len(self._origins),
            expanded=expanded,
            transitions=transitions,
            deepest=max(self._depths.values()),
            longest=self._convergence.longest,
            seconds=time.process_time() - began,
            is_complete=not frontier,
        )

    def replay(self, path: Sequence[str]) -> State:
        """The state after the transitions of these labels. Raises :class:`Violation` as an exploration does, and
        ``KeyError`` where the model has no such transition."""
        state = State()
        self._convergence.check(state)
        for label in path:
            state = dict(self._steps(state))[label]()
            self._convergence.check(state)
        return state

    def _visit(self, state: State, origin: tuple[State, str] | None, frontier: list[State]) -> None:
        self._convergence.check(state)
        self._origins[state] = origin
        self._depths[state] = 0 if origin is None else self._depths[origin[0]] + 1
        if not state.gone:
            frontier.append(state)

    def _steps(self, state: State) -> Iterator[tuple[str, Step]]:
        """Every transition of ``state``; each also followed by a reconcile that had read its objects before it."""
        quiet = self._convergence.next(state)
        if quiet is not None:
            yield QUIET, lambda: quiet
        for steps in (self._reconciler.steps(state), surroundings.steps(self._scenario, state)):
            for label, step in steps:
                yield label, step
                if not self._reconciler.planned(state).is_quiet:
                    yield label + LATE, lambda step=step: self._reconciler.late(state, step())  # type: ignore[misc]

    # --- a violation

    def _explained(self, state: State, label: str, violation: Violation) -> Violation:
        path = [label]
        while (origin := self._origins[state]) is not None:
            state, label = origin
            path.insert(0, label)
        lines = "\n".join(f"  {number}. {one}" for number, one in enumerate(self._shortened(path), 1))
        return Violation(f"{self._scenario.name}: {violation}, after\n{lines}")

    def _shortened(self, path: list[str]) -> list[str]:
        """The path without the transitions that the violation does not need, alone or in pairs."""
        for first, second in itertools.combinations_with_replacement(range(len(path)), 2):
            shorter = [label for number, label in enumerate(path) if number not in (first, second)]
            if self._is_violated(shorter):
                return self._shortened(shorter)
        return path

    def _is_violated(self, path: list[str]) -> bool:
        try:
            self.replay(path)
        except KeyError:
            return False
        except Violation:
            return True
        return False


def _take(frontier: list[State], chance: random.Random) -> State:
    """Mostly one of the states that were found last, so that paths become long, otherwise any one."""
    if chance.random() < 0.25:
        position = chance.randrange(len(frontier))
        frontier[position], frontier[-1] = frontier[-1], frontier[position]
    return frontier.pop()
