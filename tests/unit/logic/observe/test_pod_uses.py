"""What is read of the pods that a job has, and has had."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import pod_uses
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import header, marked
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import PodUse, PodUses, Span

OWNER = Owner("lab", "the-job")


def at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


T0 = 1_767_225_600
"""2026-01-01."""


def pod(name: str = "a", owner: str = "the-job", bound: int | None = 10, **status: Any) -> dict[str, Any]:
    """A pod of worker 1 with one core, bound to its node after so many seconds."""
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(bound)}] if bound else []
    kind = "Job" if owner != "the-job" else "MXJob"
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "labels": {"dljob.operator/replica-type": "worker", "dljob.operator/replica-index": "1"},
            "ownerReferences": [{"apiVersion": "x/v1", "kind": kind, "uid": owner, "controller": True}],
            **status.pop("metadata", {}),
        },
        "spec": {
            "restartPolicy": status.pop("policy", "Never"),
            "nodeName": "n" if bound else "",
            "containers": [{"name": "mxnet", "resources": {"requests": {"cpu": "1"}}}, {"name": "sidecar"}],
        },
        "status": {"phase": "Running", **status, "conditions": [*conditions, *status.get("conditions", ())]},
    }


def states(now: Any = None, before: Any = None, name: str = "mxnet") -> list[dict[str, Any]]:
    return [{"name": name, "state": now or {}, **({"lastState": before} if before else {})}]


def ran(start: int, end: int, code: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": at(start), "finishedAt": at(end)}}


def running(since: int) -> dict[str, Any]:
    return {"running": {"startedAt": at(since)}}


def uses(*pods: Any, gone: Any = None, batch_jobs: tuple[str, ...] = ()) -> PodUses:
    return pod_uses.read(OWNER, batch_jobs, "mxnet", pods, gone)


def one(given: Any) -> PodUse:
    (found,) = uses(given).pods
    return found


def spans(*times: tuple[int, int | None]) -> tuple[Span, ...]:
    return tuple(Span(T0 + start, None if end is None else T0 + end) for start, end in times)


def test_a_running_pod() -> None:
    found = one(pod(containerStatuses=states(running(20))))
    assert found == PodUse(("worker", 1), {"cpu": 1_000_000}, *spans((10, None)), spans((20, None)), None, "Failure")


@pytest.mark.parametrize(
    ("given", "held", "worked", "succeeded", "cause"),
    [
        # it waits for its node, or for its image
        (pod(phase="Pending"), (10, None), [], None, "Failure"),
        # ended, while a sidecar took longer
        (
            pod(phase="Succeeded", containerStatuses=[*states(ran(20, 50)), *states(ran(20, 55), name="sidecar")]),
            (10, 55), [(20, 50)], 50, "Failure",
        ),
        # the sidecar goes on
        (
            pod(containerStatuses=[*states(ran(20, 50)), *states(running(20), name="sidecar")]),
            (10, None), [(20, 50)], 50, "Failure",
        ),
        # the kubelet has restarted it, and will again
        (pod(policy="OnFailure", containerStatuses=states(running(40), ran(20, 30, 1))), (10, None),
         [(20, 30), (40, None)], None, "Failure"),
        (pod(policy="Always", containerStatuses=states(ran(20, 30))), (10, None), [(20, 30)], None, "Failure"),
        # evicted before a container ran, by the time of its last condition
        (
            pod(phase="Failed", conditions=[
                {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at(33)}]),
            (10, 33), [], None, "Disruption",
        ),
        # its node was lost while it ran
        (
            pod(phase="Failed", containerStatuses=states(running(20)), conditions=[
                {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at(90)}]),
            (10, 90), [(20, 90)], None, "Disruption",
        ),
        # a clock that is behind
        (pod(phase="Failed", containerStatuses=states(ran(5, 8, 1))), (10, 10), [(5, 8)], None, "Failure"),
        # deleted: killed, with an answer of its own to the signal, or after it had failed
        (
            pod(phase="Failed", metadata={"deletionTimestamp": at(70), "deletionGracePeriodSeconds": 30},
                containerStatuses=states(ran(20, 42, 1))),
            (10, 42), [(20, 42)], None, "Deletion",
        ),
        (
            pod(phase="Failed", metadata={"deletionTimestamp": at(70), "deletionGracePeriodSeconds": 30},
                containerStatuses=states(ran(20, 39, 1))),
            (10, 39), [(20, 39)], None, "Failure",
        ),
        (
            pod(phase="Failed", metadata={"deletionTimestamp": at(45), "deletionGracePeriodSeconds": 0},
                containerStatuses=states(ran(20, 44, 137))),
            (10, 44), [(20, 44)], None, "Deletion",
        ),
        # deleted, and it answered by exit code 0; the last state of one that is gone; and one that had succeeded before
        (
            pod(phase="Succeeded", metadata={"deletionTimestamp": at(70), "deletionGracePeriodSeconds": 30},
                containerStatuses=states(ran(20, 41))),
            (10, 41), [(20, 41)], None, "Deletion",
        ),
        (
            pod(phase="Succeeded", metadata={"deletionTimestamp": at(42)}, containerStatuses=states(ran(20, 41))),
            (10, 41), [(20, 41)], None, "Deletion",
        ),
        (
            pod(phase="Succeeded", metadata={"deletionTimestamp": at(70), "deletionGracePeriodSeconds": 30},
                containerStatuses=states(ran(20, 30))),
            (10, 30), [(20, 30)], 30, "Failure",
        ),
    ],
)  # fmt: skip
def test_what_a_pod_held_and_did(given: Any, held: Any, worked: Any, succeeded: int | None, cause: str) -> None:
    found = one(given)
    assert found.held == spans(held)[0]
    assert found.worked == spans(*worked)
    assert found.succeeded == (None if succeeded is None else T0 + succeeded)
    assert found.cause == cause


def test_a_pod_without_a_node_holds_nothing() -> None:
    assert uses(pod(bound=None, phase="Pending")).pods == ()


def test_a_pod_that_no_scheduler_has_placed_counts_from_its_start_time() -> None:
    given = pod(bound=None, startTime=at(12))
    given["spec"]["nodeName"] = "n"
    assert one(given).held == spans((12, None))[0]


def test_whose_pods_count() -> None:
    mine, launched, foreign = pod("a"), pod("b", owner="launcher"), pod("c", owner="launcher-of-another")
    elsewhere = pod("d", metadata={"namespace": "other"})
    failed_before = {**pod("e", owner="launcher"), "failedBefore": True}
    found = uses(mine, launched, foreign, elsewhere, failed_before, batch_jobs=("launcher",))
    assert len(found.pods) == 2


def test_pods_that_are_gone() -> None:
    killed = marked(pod("b", containerStatuses=states(running(20))), 7, at(80))
    ended = marked(pod("c", phase="Failed", containerStatuses=states(ran(20, 50, 1))), 9, at(90))
    found = uses(pod("a"), pod("b"), gone=[header("w1", at(5)), killed, ended])
    assert (found.watch, found.since) == ("w1", T0 + 5)
    assert [one.held for one in found.gone] == [*spans((10, 80), (10, 50))]
    assert [one.worked for one in found.gone] == [spans((20, 80)), spans((20, 50))]
    assert [one.number for one in found.gone] == [7, 9]
    assert len(found.pods) == 1, "a pod that a snapshot has twice, since it went meanwhile, counts as gone"


def test_without_an_engine_no_pod_is_known_to_be_gone() -> None:
    assert uses(pod()) == PodUses(uses(pod()).pods)
