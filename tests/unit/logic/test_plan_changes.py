"""What others do to a job meanwhile: edits, deletions, crashes of the operator, caches that lag behind."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan
from support.builders import MXJob, environment_of, mxjob
from support.fake_cluster import World, is_quiet

DIALECTS = ("v1", "v1alpha1", "fioravanzo", "mpba")


def job(flavor: str = "v1alpha1", policy: str = "OnFailure") -> MXJob:
    return mxjob("digits").flavor(flavor).servers(1).workers(2).restart(policy)


def entry(spec: Any, type_: str) -> dict[str, Any]:
    """The replica spec of a type, in whatever flavor."""
    if isinstance(spec, dict) and "mxReplicaSpecs" in spec:
        return dict.__getitem__(spec["mxReplicaSpecs"], type_)
    entries = spec if isinstance(spec, list) else spec["replicaSpecs"]
    return next(e for e in entries if type_.upper() in (e.get("mxReplicaType"), e.get("replicaType")))


# --- edits


@pytest.mark.parametrize("flavor", DIALECTS)
def test_an_edited_template_replaces_the_pods_of_its_type_only(flavor: str) -> None:
    world = World(job(flavor))
    world.start()
    kept = {n: p["metadata"]["uid"] for n, p in world.pods.items() if "worker" not in n}
    world.edit(lambda spec: entry(spec, "Worker")["template"]["spec"]["containers"][0].update(image="train:2"))
    world.settle()
    world.run_all()
    world.settle()
    assert [world.pod("worker", i)["spec"]["containers"][0]["image"] for i in (0, 1)] == ["train:2"] * 2
    assert {n: p["metadata"]["uid"] for n, p in world.pods.items() if "worker" not in n} == kept
    assert world.status["observedGeneration"] == 2
    assert world.outcome == ("Running", "Running")
    assert "retries" not in world.status
    (event,) = [e for e in world.events if e.reason == "MXJobChanged"]
    assert event.type == "Normal"


@pytest.mark.parametrize("flavor", DIALECTS)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_scaling_starts_everybody_anew(flavor: str, count: int) -> None:
    """A parameter-server cluster cannot learn of it any other way."""
    world = World(job(flavor))
    world.start()
    before = {p["metadata"]["uid"] for p in world.pods.values()}
    world.edit(lambda spec: entry(spec, "Worker").update(replicas=count))
    world.settle()
    world.run_all()
    world.settle()
    assert world.replicas() == ["scheduler-0", "server-0", *(f"worker-{i}" for i in range(count))]
    assert not before & {p["metadata"]["uid"] for p in world.pods.values()}
    assert environment_of(world.pod("scheduler", 0))["DMLC_NUM_WORKER"] == str(count)
    assert world.status["replicas"] == f"{count + 2}/{count + 2}"


def test_another_runtime_id_is_another_cluster() -> None:
    world = World(job().option(RuntimeId="old"))
    world.start()
    world.edit(lambda spec: spec.update(RuntimeId="new"))
    world.settle()
    assert all("-new-" in name for name in world.pods)
    assert "mxjob-new" in world.services
    assert world.status["runtimeId"] == "new"


@pytest.mark.parametrize(
    "change",
    [
        {"runPolicy": {"backoffLimit": 7}},
        {"runPolicy": {"ttlSecondsAfterFinished": 7}},
        {"terminationPolicy": {"chief": {"replicaName": "WORKER"}}},
    ],
)
def test_other_edits_leave_the_pods_alone(change: dict[str, Any]) -> None:
    world = World(job())
    world.start()
    world.edit(lambda spec: spec.update(change))
    done = world.step()
    assert (done.pods, done.deletions, done.events) == ((), (), ())
    assert world.status["observedGeneration"] == 2


def test_a_deadline_that_is_set_later_counts_from_the_start() -> None:
    world = World(job())
    world.start()
    world.advance(100)
    world.edit(lambda spec: spec.update(runPolicy={"activeDeadlineSeconds": 101}))
    assert world.settle()[-1].requeue_after == 1


def test_progress_of_the_old_spec_is_forgotten() -> None:
    world = World(job("v1alpha1", "Never"))
    world.start()
    world.exit("worker", 0, 1)
    world.exit("worker", 1, 0)
    world.advance(60)
    world.settle()
    world.run_all()
    world.settle()
    assert (world.status["retries"], world.status["completed"]) == ({"worker-0": 1}, {"worker": "1"})
    world.edit(lambda spec: entry(spec, "Worker").update(replicas=3))
    world.settle()
    assert not {"retries", "completed"} & set(world.status)
    assert world.replicas() == ["scheduler-0", "server-0", "worker-0", "worker-1", "worker-2"]


def test_an_edit_of_a_finished_job_starts_nothing() -> None:
    world = World(job())
    world.start()
    world.exit("scheduler", 0, 0)
    world.settle()
    created = list(world.created)
    world.edit(lambda spec: entry(spec, "Worker").update(replicas=3))
    world.settle()
    assert (world.created, world.outcome) == (created, ("Done", "Succeeded"))


def test_a_pod_whose_index_somebody_changed_counts_for_nothing() -> None:
    world = World(job())
    world.start()
    world.exit("worker", 1, 0)
    world.pod("worker", 1)["metadata"]["labels"]["dljob.operator/replica-index"] = "2"
    world.settle()
    assert "completed" not in world.status
    assert world.replicas() == ["scheduler-0", "server-0", "worker-0", "worker-1"]


# --- suspend and resume


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo"])
def test_suspend_and_resume(flavor: str) -> None:
    world = World(job(flavor).run_policy(activeDeadlineSeconds=60))
    world.start()
    world.exit("worker", 0, 0)
    world.settle()
    world.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    world.settle()
    assert world.replicas() == []
    assert world.status["replicas"] == "0/4"
    assert world.status["phase"] == "Creating"
    assert world.conditions[-2:] == [("Running", "False"), ("Suspended", "True")]
    world.advance(3600)
    assert world.step() == Plan()
    world.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    world.start()
    assert world.replicas() == ["scheduler-0", "server-0", "worker-0", "worker-1"], "all start together again"
    assert world.status["startTime"] == world.time
    assert world.outcome == ("Running", "Running")
    assert [e.reason for e in world.events if e.reason in ("MXJobSuspended", "MXJobResumed")] == [
        "MXJobSuspended",
        "MXJobResumed",
    ]


def test_suspended_from_the_start() -> None:
    world = World(job("v1").run_policy(suspend=True))
    world.settle()
    assert (world.created, world.services) == ([], {})
    assert world.status["state"] == "Suspended"
    assert world.conditions == [("Created", "True"), ("Suspended", "True")]
    # a queue that admits the job adds to its templates
    world.edit(
        lambda spec: (
            spec["runPolicy"].update(suspend=False),
            entry(spec, "Worker")["template"]["spec"].update(nodeSelector={"a": "b"}),
        )
    )
    world.start()
    assert world.outcome == ("Running", "Running")
    assert not [e for e in world.events if e.reason == "MXJobChanged"]


def test_resumed_while_the_old_pods_still_terminate() -> None:
    world = World(job("v1").run_policy(suspend=True))
    world.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    world.start()
    world.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    world.step()
    world.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    assert world.step().pods == ()
    world.settle()
    assert len(world.pods) == 4


def test_a_finished_job_cannot_be_suspended() -> None:
    world = World(job("v1").run_policy(suspend=False))
    world.start()
    world.exit("scheduler", 0, 0)
    world.settle()
    world.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    world.settle()
    assert world.outcome == ("Done", "Succeeded")


# --- deletions


@pytest.mark.parametrize("flavor", DIALECTS)
@pytest.mark.parametrize("type_", ["scheduler", "server", "worker"])
def test_a_deleted_pod_is_made_anew(flavor: str, type_: str) -> None:
    world = World(job(flavor))
    world.start()
    old = world.pod(type_, 0)
    world.user_deletes(old["metadata"]["name"])
    assert world.step().pods == (), "not while the old one still answers to its name"
    world.settle()
    new = world.pod(type_, 0)
    assert (new["metadata"]["name"], new["spec"]) == (old["metadata"]["name"], old["spec"])
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "retries" not in world.status


@pytest.mark.parametrize("flavor", DIALECTS)
def test_deleted_services_are_made_anew(flavor: str) -> None:
    world = World(job(flavor))
    world.start()
    before = set(world.services)
    world.services.clear()
    world.settle()
    assert set(world.services) == before


# --- the operator dies, or its status write meets a conflict


@pytest.mark.parametrize("flavor", DIALECTS)
def test_after_the_first_writes(flavor: str) -> None:
    world = World(job(flavor))
    world.step(status_gets_lost=True)
    assert not world.status
    again = world.step()
    assert (again.pods, again.services, again.deletions) == ((), (), ())
    assert world.status["phase"] == "Creating"


@pytest.mark.parametrize("flavor", DIALECTS)
def test_at_the_end_the_outcome_is_never_lost(flavor: str) -> None:
    made = job(flavor) if flavor == "mpba" else job(flavor).run_policy(cleanPodPolicy="All")
    world = World(made)
    world.start()
    created = list(world.created)
    world.exit("scheduler", 0, 0)
    for _ in range(3):
        world.step(status_gets_lost=True)
    assert "scheduler-0" in world.replicas()
    world.settle()
    assert (world.outcome, world.created) == (("Done", "Succeeded"), created)


def test_at_a_failure_the_count_is_never_lost() -> None:
    world = World(job("v1alpha1", "Never"))
    world.start()
    world.exit("worker", 0, 1)
    world.advance(60)
    for _ in range(3):
        world.step(status_gets_lost=True)
    assert world.attempt("worker", 0) == 0
    world.settle()
    assert (world.attempt("worker", 0), world.status["retries"]) == (1, {"worker-0": 1})


@pytest.mark.parametrize("lost", range(8))
def test_wherever_a_status_is_lost_the_end_is_the_same(lost: int) -> None:
    """The n-th reconcile of a whole life, with a restart in it, loses its status."""

    def life(lost: int | None) -> World:
        world = World(job("v1alpha1", "Never"))
        steps = 0

        def settle() -> None:
            nonlocal steps
            for _ in range(8):
                world.step(status_gets_lost=steps == lost)
                steps += 1
                world.kubelet_deletes()

        settle()
        world.run_all()
        settle()
        world.exit("worker", 1, 1)
        world.advance(5)
        settle()
        world.run_all()
        settle()
        world.exit("scheduler", 0, 0)
        settle()
        return world

    expected, found = life(None), life(lost)
    assert found.status == expected.status
    assert sorted(found.pods) == sorted(expected.pods)
    assert found.created == expected.created


@pytest.mark.parametrize("flavor", DIALECTS)
def test_after_an_edit(flavor: str) -> None:
    world = World(job(flavor))
    world.start()
    world.edit(lambda spec: entry(spec, "Worker").update(replicas=1))
    world.step(status_gets_lost=True)
    world.kubelet_deletes()
    world.settle()
    assert world.replicas() == ["scheduler-0", "server-0", "worker-0"]


# --- a cache that lags behind


def test_the_same_view_twice_gives_the_same_names() -> None:
    world = World(job())
    first, second = world.planned(), world.planned()
    assert [p["metadata"]["name"] for p in first.pods] == [p["metadata"]["name"] for p in second.pods]
    assert first == second


@pytest.mark.parametrize("flavor", DIALECTS)
def test_a_view_from_before_the_creation(flavor: str) -> None:
    world = World(job(flavor))
    stale = world.planned()
    world.step()
    uids = {p["metadata"]["uid"] for p in world.pods.values()}
    world.carry_out(stale)
    assert {p["metadata"]["uid"] for p in world.pods.values()} == uids, "AlreadyExists"
    assert is_quiet(world.step())


def test_a_view_from_before_the_replacement() -> None:
    world = World(job("v1alpha1", "Never"))
    world.start()
    world.exit("worker", 0, 1)
    world.advance(60)
    before = copy.deepcopy(world.pods)
    world.settle()
    assert world.attempt("worker", 0) == 1
    now, world.pods = world.pods, before
    stale = world.planned()
    world.pods = now
    world.carry_out(stale)
    world.settle()
    assert (world.attempt("worker", 0), world.status["retries"]) == (1, {"worker-0": 1})
    assert len([n for n in world.created if n.startswith("worker-") and "-0-" in n]) == 2


def test_a_status_from_before_the_count() -> None:
    world = World(job("v1alpha1", "Never"))
    world.start()
    world.exit("worker", 0, 1)
    before = copy.deepcopy(world.resource)
    world.step()
    counted, world.resource = world.resource, before
    assert world.planned().status == counted["status"]
