"""Status and Event of an invalid job."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.invalid import may_have_pods, plan_invalid
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, OwnedObject
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact, Plan
from support.builders import MXNET, NOW, UID, mxjob, observed, pod_of, stamp
from support.fake_cluster import FakeCluster


def test_a_job_that_was_never_valid_is_failed() -> None:
    resource = mxjob("digits").v1().option(RuntimeId="ignored").resource()
    done = plan_invalid(resource, MXNET, ["a is wrong", "b is wrong"], NOW)
    errors = "a is wrong; b is wrong"
    assert done.status
    assert (
        done.status.items()
        >= {
            "phase": "Failed",
            "state": "Failed",
            "reason": f"FailedValidation: {errors}",
            "failure": {"reason": "FailedValidation", "message": errors},
            "observedGeneration": 1,
        }.items()
    )
    assert [(c["type"], c["reason"], c["message"]) for c in done.status["conditions"]] == [
        ("Failed", "MXJobFailedValidation", errors)
    ]
    assert done.events == (EventNote("Warning", "MXJobFailedValidation", errors),)
    assert (done.pods, done.services, done.deletions, done.requeue_after) == ((), (), (), None)


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo", "mpba"])
def test_an_invalid_job_is_reported_once_and_not_requeued(flavor: str) -> None:
    fake_cluster = FakeCluster(mxjob().flavor(flavor).scheduler(2))
    first, second = fake_cluster.settle()
    assert first.status
    assert second == Plan()
    assert fake_cluster.outcome == ("Failed", "Failed")
    assert [e.reason for e in fake_cluster.events] == ["MXJobFailedValidation"]


def test_another_mistake_is_another_message() -> None:
    fake_cluster = FakeCluster(mxjob().v1().scheduler(2))
    fake_cluster.settle()
    fake_cluster.advance(5)
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Scheduler"].update(replicas=3))
    fake_cluster.settle()
    assert "replicas is 3" in fake_cluster.status["reason"]
    assert len(fake_cluster.conditions) == 1
    assert fake_cluster.status["conditions"][0]["lastUpdateTime"] == stamp(5)
    assert len(fake_cluster.events) == 2


def test_an_edit_fixes_an_invalid_job() -> None:
    fake_cluster = FakeCluster(mxjob().v1().scheduler(2).workers(1))
    fake_cluster.settle()
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Scheduler"].update(replicas=1))
    fake_cluster.start()
    assert fake_cluster.outcome == ("Running", "Running")
    assert "failure" not in fake_cluster.status
    assert fake_cluster.conditions == [("Created", "True"), ("Running", "True")]


def test_a_running_job_keeps_the_pods_of_its_last_valid_spec() -> None:
    fake_cluster = FakeCluster(mxjob().v1().workers(1))
    fake_cluster.start()
    before = fake_cluster.replicas()
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=-1))
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Running", "Running")
    assert fake_cluster.status["reason"].startswith("the spec is invalid, and pods of the last valid spec stay: ")
    assert fake_cluster.replicas() == before
    assert fake_cluster.events[-1].reason == "MXJobFailedValidation"
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=1))
    fake_cluster.settle()
    assert (fake_cluster.status["reason"], fake_cluster.replicas()) == ("", before)


def test_an_edit_after_the_end_changes_nothing() -> None:
    fake_cluster = FakeCluster(mxjob().v1().workers(1))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    ended = dict(fake_cluster.status)
    fake_cluster.edit(lambda spec: spec.update(mxReplicaSpecs={}))
    fake_cluster.settle()
    assert fake_cluster.status == ended


def test_a_rejected_job_that_is_edited_into_an_invalid_one_reports_it() -> None:
    held = {"state": "Failed", "observedGeneration": 0, "failure": {"reason": "RefusedByKubernetes"}}
    done = plan_invalid(mxjob().status(**held, completionTime=stamp()).resource(), MXNET, ["x is wrong"], NOW)
    assert done.status
    assert done.status["failure"]["reason"] == "FailedValidation"


def test_an_invalid_job_has_a_runtime_id() -> None:
    fresh = plan_invalid(mxjob().resource(), MXNET, ["x"], NOW).status
    known = plan_invalid(mxjob().status(runtimeId="aycw").resource(), MXNET, ["x"], NOW).status
    assert fresh
    assert known
    assert (fresh["runtimeId"], known["runtimeId"]) == (naming.runtime_id(UID), "aycw")


def test_other_conditions_are_kept_and_an_old_failure_is_replaced() -> None:
    held_conditions = [{"type": t, "status": "True", "reason": "MXJobFailedValidation"} for t in ("Created", "Failed")]
    held = {"state": "Failed", "observedGeneration": 0, "failure": {"reason": "FailedValidation"}}
    for message, stays in (("x is wrong", True), ("y is wrong", False)):
        before = [{**c, "message": message, "lastUpdateTime": stamp(-5)} for c in held_conditions]
        done = plan_invalid(mxjob().status(**held, conditions=before).resource(), MXNET, ["x is wrong"], NOW)
        assert done.status
        created, failed = done.status["conditions"]
        assert (created, failed["message"]) == (before[0], "x is wrong")
        assert (failed["lastUpdateTime"] == stamp(-5)) is stays


def test_a_long_list_of_errors_is_truncated() -> None:
    done = plan_invalid(mxjob().resource(), MXNET, ["x" * 900, "y" * 900], NOW)
    assert done.status
    assert len(done.status["reason"]) <= 1024


@pytest.mark.parametrize(
    "broken", [{"metadata": None}, {"status": None}, {"status": "x"}, {"status": {"conditions": None}}]
)
def test_any_malformed_job_is_reported(broken: dict[str, Any]) -> None:
    done = plan_invalid({**mxjob().resource(), **broken}, MXNET, ["x"], NOW)
    assert done.status
    assert done.status["state"] == "Failed"


@pytest.mark.parametrize(("metadata", "generation"), [({}, 0), ({"generation": "2"}, 0), ({"generation": 2}, 2)])
def test_the_generation_that_was_reported(metadata: dict[str, Any], generation: int) -> None:
    done = plan_invalid({**mxjob().resource(), "metadata": metadata}, MXNET, ["x"], NOW)
    assert done.status
    assert done.status["observedGeneration"] == generation


def test_a_job_of_another_controller_is_left_alone() -> None:
    job = mxjob().run_policy(managedBy="example.com/other")
    assert plan_invalid(job.resource(), MXNET, ["x"], NOW) == Plan()


def begun(seconds: float) -> Observed:
    job = mxjob().workers(1).job()
    return observed(job, [pod_of(job, "worker").created(seconds)])


def test_a_job_without_a_status_started_with_its_first_pod() -> None:
    done = plan_invalid(mxjob().resource(), MXNET, ["x is wrong"], NOW, begun(-60))
    assert done.status
    assert (done.status["phase"], done.status["startTime"]) == ("Creating", stamp(-60))
    assert done.status["reason"].endswith("and pods of the last valid spec stay: x is wrong")
    assert "state" not in done.status
    job = mxjob().workers(1).job()
    ending = observed(job, [pod_of(job, "worker").created(-60).deleting()])
    assert plan_invalid(mxjob().resource(), MXNET, ["x is wrong"], NOW, ending).status == done.status
    fresh = plan_invalid(mxjob().resource(), MXNET, ["x is wrong"], NOW)
    assert fresh.status
    assert "startTime" not in fresh.status


def test_a_recorded_start_stays_whatever_the_first_pod_is() -> None:
    held = {"phase": "Running", "state": "Running", "startTime": stamp(-90)}
    done = plan_invalid(mxjob().status(**held).resource(), MXNET, ["x is wrong"], NOW, begun(-60))
    assert done.status
    assert (done.status["phase"], done.status["startTime"]) == ("Running", stamp(-90))


FAILED: dict[str, Any] = {
    "failure": {"reason": "FailedValidation"},
    "conditions": [{"type": "Failed", "status": "True"}],
}


RESUMED = [*FAILED["conditions"], {"type": "Suspended", "status": "True"}]


@pytest.mark.parametrize(
    ("held", "count"),
    [
        ({}, 1),
        ({"startTime": stamp(), "conditions": RESUMED}, 1),
        ({"startTime": stamp()}, 0),
        ({"failure": {"reason": "RefusedByKubernetes"}}, 0),
        ({"conditions": [{"type": "Succeeded", "status": "True"}]}, 0),
    ],
    ids=["invalid", "resumed", "it ran", "refused", "succeeded"],
)
def test_a_job_that_has_failed_before_it_began_has_no_pods(held: dict[str, Any], count: int) -> None:
    """An operator with an older spec in its cache may have created them, or one whose status write failed."""
    status = {**FAILED, **held, "observedGeneration": 1}
    resource = mxjob().v1().status(**status).resource()
    job = mxjob().workers(1).job()
    active = observed(job, [pod_of(job, "worker")])
    found = plan_invalid(resource, MXNET, ["x is wrong"], NOW, active)
    assert (len(found.deletions), bool(found.presumed(Fact.SPEC_IS_CURRENT))) == (count, bool(count))
    assert (found.status, found.requeue_after) == (None, 0 if count else None)
    assert plan_invalid(resource, MXNET, ["x"], NOW, observed(job, [pod_of(job, "worker").deleting()])) == Plan()
    resource["metadata"]["generation"] = 2
    edited = plan_invalid(resource, MXNET, ["y is wrong"], NOW, active)
    if count:
        assert (edited.deletions, edited.requeue_after) == ((), 0), "after the status"
        assert edited.status


@pytest.mark.parametrize(("lifetime", "deleting", "count"), [("active", "", 1), ("active", stamp(), 0), ("job", "", 0)])
def test_nor_an_object_that_only_active_jobs_have(lifetime: str, deleting: str, count: int) -> None:
    resource = mxjob().v1().status(**FAILED, observedGeneration=1).resource()
    owned = Observed(
        owned_objects={("HorizontalPodAutoscaler", "digits"): OwnedObject("a", "b", lifetime, deleting=deleting)}
    )
    found = plan_invalid(resource, MXNET, ["x is wrong"], NOW, owned)
    assert (len(found.deletions), found.requeue_after) == (count, None)
    resource["metadata"]["generation"] = 2
    assert plan_invalid(resource, MXNET, ["y is wrong"], NOW, owned).requeue_after == (0 if count else None)


@pytest.mark.parametrize(
    ("status", "depends"),
    [
        ({}, True),
        ({"reason": "Pod/a: denied", "conditions": []}, True),
        ({"startTime": stamp()}, False),
        ({"failure": {"reason": "DeadlineExceeded"}, "conditions": [{"type": "Failed", "status": "True"}]}, False),
        ({**FAILED, "observedGeneration": 0}, True),
    ],
    ids=["none", "without a beginning", "begun", "failed", "failed as invalid"],
)
def test_the_pods_say_whether_a_job_has_begun_of_which_no_status_says_it(status: dict[str, Any], depends: bool) -> None:
    """The status of the reconcile that created them is lost, and a cache may lack them: no later plan finds them."""
    resource = mxjob().v1().status(**status).resource()
    assert may_have_pods(resource) is depends
    failed = plan_invalid(resource, MXNET, ["x is wrong"], NOW)
    assert bool(failed.presumed(Fact.PODS_ARE_DELETED)) is depends


def with_ttl(ttl: object) -> FakeCluster:
    resource = mxjob().option(runPolicy={"ttlSecondsAfterFinished": ttl}).resource()
    resource["spec"]["jobMode"] = "nonsense"
    return FakeCluster(resource)


def test_an_invalid_job_is_deleted_when_its_time_to_live_is_over() -> None:
    cluster = with_ttl(60)
    assert cluster.planned().requeue_after == 60, "with the failure"
    cluster.step()
    assert cluster.planned().requeue_after == 60
    cluster.advance(59)
    assert (cluster.planned().requeue_after, cluster.planned().delete_job) == (1, False)
    cluster.advance(1)
    assert cluster.planned().delete_job


def test_an_invalid_job_without_a_time_to_live_is_deleted_at_once() -> None:
    cluster = with_ttl(0)
    cluster.step()
    assert cluster.planned().delete_job


@pytest.mark.parametrize("ttl", ["60", True, -1, None])
def test_a_time_to_live_that_is_invalid_itself_deletes_nothing(ttl: object) -> None:
    cluster = with_ttl(ttl)
    cluster.step()
    cluster.advance(10_000_000)
    assert (cluster.planned().requeue_after, cluster.planned().delete_job) == (None, False)


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo"])
def test_a_suspended_job_loses_its_pods_in_every_layout(flavor: str) -> None:
    cluster = FakeCluster(mxjob().flavor(flavor).workers(1))
    cluster.start()
    assert cluster.pods
    cluster.edit(lambda spec: spec.update(runPolicy={"suspend": True, "backoffLimit": -1}))
    cluster.settle()
    assert (cluster.pods, cluster.conditions[-1]) == ({}, ("Suspended", "True"))
    reasons = [event.reason for event in cluster.events]
    assert reasons[-2:] == ["MXJobFailedValidation", "MXJobSuspended"]


def test_a_pod_that_terminates_is_not_deleted_again() -> None:
    made = mxjob().v1().status(startTime=stamp()).run_policy(suspend=True).workers(1)
    job, resource = made.job(), made.resource()
    pod = pod_of(job, "worker").running()
    assert len(plan_invalid(resource, MXNET, ["x"], NOW, observed(job, [pod])).deletions) == 1
    assert not plan_invalid(resource, MXNET, ["x"], NOW, observed(job, [pod.deleting()])).deletions


@pytest.mark.parametrize("before", [{}, {"startTime": stamp()}], ids=["first admission", "another one"])
def test_pods_that_are_newer_than_the_suspended_status_keep_running(before: dict[str, str]) -> None:
    """The job was resumed, and the status of that reconcile lost against the edit that has made it invalid."""
    suspended = [{"type": "Suspended", "status": "True"}]
    made = mxjob().v1().status(**before, conditions=suspended).workers(1)
    job, resource = made.job(), made.resource()
    pod, ending = pod_of(job, "worker"), pod_of(job, "worker").deleting()
    for pods, state in (([pod], "Running"), ([ending], "Failed"), ([], "Failed")):
        status = plan_invalid(resource, MXNET, ["x"], NOW, observed(job, pods)).status
        assert status
        assert (status.get("state"), may_have_pods(resource)) == (state, True)
    again = made.run_policy(suspend=True).resource()
    first = plan_invalid(again, MXNET, ["x"], NOW, observed(job, [pod]))
    assert (first.deletions, first.requeue_after) == ((), 0)
    again["status"] = first.status
    assert len(plan_invalid(again, MXNET, ["x"], NOW, observed(job, [pod])).deletions) == 1


def test_the_only_entry_of_a_layout_without_types_stays_one() -> None:
    held = {"replicaStatuses": {"active": 3}, "replicas": "3/3", "startTime": stamp()}
    resource = mxjob().v1().status(**held).run_policy(suspend=True).resource()
    status = plan_invalid(resource, MXNET, ["x"], NOW).status
    assert status
    assert (status["replicaStatuses"], status["replicas"]) == ({}, "0/3")
