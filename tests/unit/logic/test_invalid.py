"""What the user of a job that cannot be understood is told."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.invalid import plan_invalid
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import EventNote, Plan
from support.builders import NOW, UID, mxjob, stamp
from support.fake_cluster import World


def test_a_job_that_was_never_good_has_failed() -> None:
    resource = mxjob("digits").v1().option(RuntimeId="ignored").resource()
    done = plan_invalid(resource, ["a is wrong", "b is wrong"], NOW)
    told = "a is wrong; b is wrong"
    assert done.status
    assert (
        done.status.items()
        >= {
            "phase": "Failed",
            "state": "Failed",
            "reason": f"FailedValidation: {told}",
            "failure": {"reason": "FailedValidation", "message": told},
            "observedGeneration": 1,
        }.items()
    )
    assert [(c["type"], c["reason"], c["message"]) for c in done.status["conditions"]] == [
        ("Failed", "MXJobFailedValidation", told)
    ]
    assert done.events == (EventNote("Warning", "MXJobFailedValidation", told),)
    assert (done.pods, done.services, done.deletions, done.requeue_after) == ((), (), (), None)


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo", "mpba"])
def test_it_is_said_once_and_never_tried_again(flavor: str) -> None:
    world = World(mxjob().flavor(flavor).scheduler(2))
    first, second = world.settle()
    assert first.status
    assert second == Plan()
    assert world.outcome == ("Failed", "Failed")
    assert [e.reason for e in world.events] == ["MXJobFailedValidation"]


def test_another_mistake_is_another_message() -> None:
    world = World(mxjob().v1().scheduler(2))
    world.settle()
    world.advance(5)
    world.edit(lambda spec: spec["mxReplicaSpecs"]["Scheduler"].update(replicas=3))
    world.settle()
    assert "replicas is 3" in world.status["reason"]
    assert len(world.conditions) == 1
    assert world.status["conditions"][0]["lastUpdateTime"] == stamp(5)
    assert len(world.events) == 2


def test_an_edit_cures_it() -> None:
    world = World(mxjob().v1().scheduler(2).workers(1))
    world.settle()
    world.edit(lambda spec: spec["mxReplicaSpecs"]["Scheduler"].update(replicas=1))
    world.start()
    assert world.outcome == ("Running", "Running")
    assert "failure" not in world.status
    assert world.conditions == [("Created", "True"), ("Running", "True")]


def test_a_running_job_goes_on_with_its_last_good_spec() -> None:
    world = World(mxjob().v1().workers(1))
    world.start()
    before = world.replicas()
    world.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=-1))
    world.settle()
    assert world.outcome == ("Running", "Running")
    assert world.status["reason"].startswith("the spec is invalid, the pods of the last valid spec keep running: ")
    assert world.replicas() == before
    assert world.events[-1].reason == "MXJobFailedValidation"
    world.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=1))
    world.settle()
    assert (world.status["reason"], world.replicas()) == ("", before)


def test_an_edit_after_the_end_changes_nothing() -> None:
    world = World(mxjob().v1().workers(1))
    world.start()
    world.exit("scheduler", 0, 0)
    world.settle()
    ended = dict(world.status)
    world.edit(lambda spec: spec.update(mxReplicaSpecs={}))
    world.settle()
    assert world.status == ended


def test_a_refused_job_that_is_edited_into_an_invalid_one_says_so() -> None:
    held = {"state": "Failed", "observedGeneration": 0, "failure": {"reason": "RefusedByKubernetes"}}
    done = plan_invalid(mxjob().status(**held, completionTime=stamp()).resource(), ["x is wrong"], NOW)
    assert done.status
    assert done.status["failure"]["reason"] == "FailedValidation"


def test_the_runtime_id_is_told_all_the_same() -> None:
    fresh = plan_invalid(mxjob().resource(), ["x"], NOW).status
    known = plan_invalid(mxjob().status(runtimeId="aycw").resource(), ["x"], NOW).status
    assert fresh
    assert known
    assert (fresh["runtimeId"], known["runtimeId"]) == (naming.runtime_id(UID), "aycw")


def test_other_conditions_stay_and_an_old_failure_makes_room() -> None:
    told = [{"type": t, "status": "True", "reason": "MXJobFailedValidation"} for t in ("Created", "Failed")]
    held = {"state": "Failed", "observedGeneration": 0, "failure": {"reason": "FailedValidation"}}
    for message, stays in (("x is wrong", True), ("y is wrong", False)):
        before = [{**c, "message": message, "lastUpdateTime": stamp(-5)} for c in told]
        done = plan_invalid(mxjob().status(**held, conditions=before).resource(), ["x is wrong"], NOW)
        assert done.status
        created, failed = done.status["conditions"]
        assert (created, failed["message"]) == (before[0], "x is wrong")
        assert (failed["lastUpdateTime"] == stamp(-5)) is stays


def test_a_long_list_of_faults_fits() -> None:
    done = plan_invalid(mxjob().resource(), ["x" * 900, "y" * 900], NOW)
    assert done.status
    assert len(done.status["reason"]) <= 1024


@pytest.mark.parametrize(
    "broken", [{"metadata": None}, {"status": None}, {"status": "x"}, {"status": {"conditions": None}}]
)
def test_however_broken_it_is(broken: dict[str, Any]) -> None:
    done = plan_invalid({**mxjob().resource(), **broken}, ["x"], NOW)
    assert done.status
    assert done.status["state"] == "Failed"
