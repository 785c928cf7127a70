"""The times of a job from what three threads have read: the response to its POST, and the watches of jobs and pods."""

from __future__ import annotations

from typing import cast

import pytest
from devtools.lab.bench import session
from devtools.lab.bench.observer import Observer, Seen, conditions


class Observed:
    """What an observer has seen of some jobs."""

    def __init__(self, *seen: Seen) -> None:
        self._seen = seen

    def seen(self, name: str) -> Seen:
        return self._seen[int(name)]


def times(*seen: Seen, pods: int = 2) -> dict[str, object]:
    names = [str(number) for number in range(len(seen))]
    return session._times(names, pods, cast("Observer", Observed(*seen)))  # noqa: SLF001 - without its workloads


def test_from_the_jobs_creation_to_its_pods() -> None:
    found = times(Seen(10.0, 10.2, [11.0, 12.0], running=14.0), Seen(11.0, 11.1, [11.5, 15.0], running=15.5))
    assert found == {
        "first_pod": (1.0, 0.5),
        "all_pods": (2.0, 4.0),
        "running": (4.0, 4.5),
        "wall": 5.0,
        "wall_running": 5.5,
    }


def test_a_response_that_is_read_late() -> None:
    """On a busy machine the pods came before it, all times were 0, and the report divided by them."""
    found = times(Seen(accepted=20.0, appeared=10.0, pods=[11.0, 12.0], running=13.0))
    assert found == {"first_pod": (1.0,), "all_pods": (2.0,), "running": (3.0,), "wall": 2.0, "wall_running": 3.0}


@pytest.mark.parametrize(
    "seen", [Seen(20.0, 20.0, [11.0, 12.0], running=13.0), Seen(20.0, None, [11.0, 12.0], running=13.0)]
)
def test_no_time_is_zero(seen: Seen) -> None:
    found = times(seen)
    assert found["all_pods"] == found["running"] == (0.001,)
    assert found["wall"] == found["wall_running"] == 0.001


def test_an_event_that_never_came() -> None:
    found = times(Seen(10.0, 10.0, [11.0]), Seen(None, None, [11.0, 12.0]))
    assert found["first_pod"] == (1.0, None)
    assert found["all_pods"] == (None, None)
    assert found["wall"] is found["wall_running"] is None


def test_conditions_that_hold() -> None:
    status = {"conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "False"}]}
    assert conditions(status) == {"Created"}
    assert conditions({}) == set()
