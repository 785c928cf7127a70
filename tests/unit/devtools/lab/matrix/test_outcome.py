"""What is said of a cell, from made-up records of its pods."""

from __future__ import annotations

from typing import Any

import pytest
from devtools.lab.matrix import outcome
from devtools.lab.matrix.outcome import Seen

EVENT = outcome.epoch("2026-01-01T00:00:10Z")


def pod(uid: str, *ended: tuple[int, str, int], restarts: int = 0, deleted: int | None = None) -> dict[str, Any]:
    """A pod whose containers ended with (exit code, reason, second); the last but one is the lastState."""
    states = [
        {"terminated": {"exitCode": code, "reason": reason, "finishedAt": f"2026-01-01T00:00:{second:02}Z",
                        "containerID": f"{uid}-{second}"}}
        for code, reason, second in ended
    ]  # fmt: skip
    status = {"restartCount": restarts, "state": states[-1] if states else {}, "lastState": (states[-2:-1] or [{}])[0]}
    metadata: dict[str, Any] = {"uid": uid}
    if deleted is not None:
        metadata |= {"deletionTimestamp": f"2026-01-01T00:00:{deleted + 30:02}Z", "deletionGracePeriodSeconds": 30}
    return {"metadata": metadata, "status": {"containerStatuses": [status]}}


def seen(**pods: list[dict[str, Any]]) -> Seen:
    found = Seen()
    for name, states in pods.items():
        for state in states:
            found.take(state, name)
    return found


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([pod("a")], "ran on"),
        ([pod("a", (1, "Error", 13))], "1 after 3 s"),
        ([pod("a", (137, "OOMKilled", 10))], "137 OOMKilled after 0 s"),
        ([pod("a", (3, "Error", 9))], "3 after 0 s"),  # of the same second
        ([pod("a", (3, "Error", 5))], "ran on"),  # before the event
        ([pod("a", (1, "Error", 12), (1, "Error", 19), restarts=1)], "1 after 2 s"),  # the first of two
        ([pod("a", deleted=12), pod("a", (143, "Error", 15), deleted=12)], "deleted after 2 s, exit 143 in 3 s"),
        ([pod("a", (1, "Error", 11), deleted=14)], "1 after 1 s"),  # it ended before
    ],
)
def test_how_a_pod_ends(states: list[dict[str, Any]], said: str) -> None:
    assert outcome.ended(seen(worker=states), "a", EVENT) == said


BEFORE = {"master": "a", "worker": "b"}
FAILED = {
    "conditions": [{"type": "Failed", "status": "True"}],
    "failure": {"pod": "m1-worker-0", "exitCode": 137, "reason": "OOMKilled"},
}


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        (seen(master=[pod("a")], worker=[pod("b")]), {}, "nothing"),
        (seen(master=[pod("a")], worker=[pod("b"), pod("c")]), {"retries": {"Worker": 1}}, "new pod for worker; counts 1 Worker"),
        (seen(master=[pod("a"), pod("d")], worker=[pod("b"), pod("c")]), {}, "new pods for all"),
        (seen(master=[pod("a")], worker=[pod("b", (1, "Error", 12), restarts=1)]), {}, "kubelet restarts worker"),
        (seen(master=[pod("a")], worker=[pod("b", (1, "Error", 5), restarts=1)]), {}, "nothing"),
        (seen(master=[pod("a")], worker=[pod("b")]), FAILED, "fails the job: m1-worker-0 137 OOMKilled"),
    ],
)  # fmt: skip
def test_the_operators_part(found: Seen, status: dict[str, Any], said: str) -> None:
    assert outcome.reaction(found, BEFORE, status, EVENT) == said


def test_survivors_are_grouped_by_their_end() -> None:
    found = seen(
        master=[pod("a", (1, "Error", 13))], worker=[pod("b", (9, "", 10))], other=[pod("c", (1, "Error", 13))]
    )
    others = outcome.survivors(found, {**BEFORE, "other": "c"}, "worker", EVENT)
    assert outcome.grouped(others) == "master, other: 1 after 3 s"


@pytest.mark.parametrize(
    ("state", "moves", "last", "said"),
    [
        ("Succeeded", True, 50, "Succeeded after 20 s"),
        ("Succeeded", True, 11, "**Succeeded** after 20 s, but the training ended at step 11 of 50"),
        ("Failed", False, 11, "Failed after 20 s"),
        ("", True, 50, "still trains after 20 s"),
        ("", False, 50, "**hangs**: no step for 46 s"),
    ],
)
def test_the_result(state: str, moves: bool, last: int, said: str) -> None:
    assert outcome.result(state, moves, 46, 20, last, 50) == said


def test_a_condition_that_is_false_is_no_end() -> None:
    assert outcome.state_of({"conditions": [{"type": "Failed", "status": "False"}]}) == ""
