"""What a run does next."""

from __future__ import annotations

from devtools.lab.chaos.run import Agenda


def agenda(*times: float) -> tuple[Agenda, list[float]]:
    made, done = Agenda(), list[float]()
    for at in times:
        made.add(at, lambda at=at: done.append(at))  # type: ignore[misc]
    return made, done


def test_actions_are_due_in_the_order_of_their_times() -> None:
    made, done = agenda(3.0, 1.0, 2.0)
    for action in made.due(2.0):
        action()
    assert done == [1.0, 2.0]
    assert made.next == 3.0


def test_an_outage_postpones_everything() -> None:
    made, done = agenda(1.0, 2.0)
    made.shift(10)
    for action in made.due(11.5):
        action()
    assert done == [1.0]
    assert made.next == 12.0


def test_it_ends() -> None:
    assert agenda()[0].next is None
