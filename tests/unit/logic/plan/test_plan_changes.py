"""External changes of a job: edits, deletions, crashes of the operator, stale caches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import MXJob, environment_of, mxjob
from support.fake_cluster import FakeCluster, is_quiet

FLAVORS = ("v1", "v1alpha1", "fioravanzo", "mpba")


def job(flavor: str = "v1alpha1", policy: str = "OnFailure") -> MXJob:
    return mxjob("digits").flavor(flavor).servers(1).workers(2).restart(policy)


def entry(spec: Any, type_: str) -> dict[str, Any]:
    """The replica spec of a type, in any flavor."""
    if isinstance(spec, dict) and "mxReplicaSpecs" in spec:
        return dict.__getitem__(spec["mxReplicaSpecs"], type_)
    entries = spec if isinstance(spec, list) else spec["replicaSpecs"]
    return next(e for e in entries if type_.upper() in (e.get("mxReplicaType"), e.get("replicaType")))


# --- edits


@pytest.mark.parametrize("flavor", FLAVORS)
def test_an_edited_template_replaces_the_pods_of_its_type_only(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.start()
    kept = {n: p["metadata"]["uid"] for n, p in fake_cluster.pods.items() if "worker" not in n}
    fake_cluster.edit(lambda spec: entry(spec, "Worker")["template"]["spec"]["containers"][0].update(image="train:2"))
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert [fake_cluster.pod("worker", i)["spec"]["containers"][0]["image"] for i in (0, 1)] == ["train:2"] * 2
    assert {n: p["metadata"]["uid"] for n, p in fake_cluster.pods.items() if "worker" not in n} == kept
    assert fake_cluster.status["observedGeneration"] == 2
    assert fake_cluster.outcome == ("Running", "Running")
    assert "retries" not in fake_cluster.status
    (event,) = [e for e in fake_cluster.events if e.reason == "MXJobChanged"]
    assert event.type == "Normal"


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_scaling_restarts_all_replicas(flavor: str, count: int) -> None:
    """A parameter-server cluster cannot learn of the change in another way."""
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.start()
    before = {p["metadata"]["uid"] for p in fake_cluster.pods.values()}
    fake_cluster.edit(lambda spec: entry(spec, "Worker").update(replicas=count))
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["scheduler-0", "server-0", *(f"worker-{i}" for i in range(count))]
    assert not before & {p["metadata"]["uid"] for p in fake_cluster.pods.values()}
    assert environment_of(fake_cluster.pod("scheduler", 0))["DMLC_NUM_WORKER"] == str(count)
    assert fake_cluster.status["replicas"] == f"{count + 2}/{count + 2}"


def test_an_edit_begins_with_the_first_attempt() -> None:
    """A replica that is new is created at once, beside pods of the old spec that still terminate."""
    fake_cluster = FakeCluster(job("v1"))
    fake_cluster.start()
    fake_cluster.edit(lambda spec: entry(spec, "Worker").update(replicas=3))
    done = fake_cluster.step()
    assert [pod["metadata"]["name"] for pod in done.pods] == ["digits-worker-2"]
    assert "attempt" not in fake_cluster.status
    fake_cluster.settle()
    assert fake_cluster.created.count("digits-worker-2") == 1


def test_another_runtime_id_is_another_cluster() -> None:
    fake_cluster = FakeCluster(job().option(RuntimeId="old"))
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec.update(RuntimeId="new"))
    fake_cluster.settle()
    assert all("-new-" in name for name in fake_cluster.pods)
    assert "mxjob-new" in fake_cluster.services
    assert fake_cluster.status["runtimeId"] == "new"


@pytest.mark.parametrize(
    "change",
    [
        {"runPolicy": {"backoffLimit": 7}},
        {"runPolicy": {"ttlSecondsAfterFinished": 7}},
        {"terminationPolicy": {"chief": {"replicaName": "WORKER"}}},
    ],
)
def test_other_edits_leave_the_pods_alone(change: dict[str, Any]) -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec.update(change))
    done = fake_cluster.step()
    assert (done.pods, done.deletions, done.events) == ((), (), ())
    assert fake_cluster.status["observedGeneration"] == 2


def test_a_deadline_that_is_set_later_counts_from_the_start() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.advance(100)
    fake_cluster.edit(lambda spec: spec.update(runPolicy={"activeDeadlineSeconds": 101}))
    assert fake_cluster.settle()[-1].requeue_after == 1


def test_progress_of_the_old_spec_is_forgotten() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.advance(60)
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert (fake_cluster.status["retries"], fake_cluster.status["completed"]) == ({"worker-0": 1}, {"worker": "1"})
    fake_cluster.edit(lambda spec: entry(spec, "Worker").update(replicas=3))
    fake_cluster.settle()
    assert not {"retries", "completed"} & set(fake_cluster.status)
    assert fake_cluster.replicas() == ["scheduler-0", "server-0", "worker-0", "worker-1", "worker-2"]


def test_an_edit_of_a_finished_job_starts_nothing() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    created = list(fake_cluster.created)
    fake_cluster.edit(lambda spec: entry(spec, "Worker").update(replicas=3))
    fake_cluster.settle()
    assert (fake_cluster.created, fake_cluster.outcome) == (created, ("Done", "Succeeded"))


def test_a_pod_with_a_changed_index_is_ignored() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.pod("worker", 1)["metadata"]["labels"]["dljob.operator/replica-index"] = "2"
    fake_cluster.settle()
    assert "completed" not in fake_cluster.status
    assert fake_cluster.replicas() == ["scheduler-0", "server-0", "worker-0", "worker-1"]


# --- suspend and resume


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo"])
def test_suspend_and_resume(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor).run_policy(activeDeadlineSeconds=60))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    fake_cluster.settle()
    assert fake_cluster.replicas() == []
    assert fake_cluster.status["replicas"] == "0/4"
    assert fake_cluster.status["phase"] == "Suspended"
    assert fake_cluster.conditions[-2:] == [("Running", "False"), ("Suspended", "True")]
    fake_cluster.advance(3600)
    assert fake_cluster.step() == Plan()
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    fake_cluster.start()
    assert fake_cluster.replicas() == ["scheduler-0", "server-0", "worker-0", "worker-1"], "all start together again"
    assert fake_cluster.status["startTime"] == fake_cluster.time
    assert fake_cluster.outcome == ("Running", "Running")
    assert [e.reason for e in fake_cluster.events if e.reason in ("MXJobSuspended", "MXJobResumed")] == [
        "MXJobSuspended",
        "MXJobResumed",
    ]


def test_suspended_from_the_start() -> None:
    fake_cluster = FakeCluster(job("v1").run_policy(suspend=True))
    fake_cluster.settle()
    assert (fake_cluster.created, fake_cluster.services) == ([], {})
    assert fake_cluster.status["state"] == "Suspended"
    assert fake_cluster.conditions == [("Created", "True"), ("Suspended", "True")]
    # a queue that admits the job adds to its templates
    fake_cluster.edit(
        lambda spec: (
            spec["runPolicy"].update(suspend=False),
            entry(spec, "Worker")["template"]["spec"].update(nodeSelector={"a": "b"}),
        )
    )
    fake_cluster.start()
    assert fake_cluster.outcome == ("Running", "Running")
    assert not [e for e in fake_cluster.events if e.reason == "MXJobChanged"]


def test_resumed_while_the_old_pods_still_terminate() -> None:
    fake_cluster = FakeCluster(job("v1").run_policy(suspend=True))
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    fake_cluster.step()
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    assert fake_cluster.step().pods == ()
    fake_cluster.settle()
    assert len(fake_cluster.pods) == 4


def test_a_finished_job_cannot_be_suspended() -> None:
    fake_cluster = FakeCluster(job("v1").run_policy(suspend=False))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")


# --- deletions


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("type_", ["scheduler", "server", "worker"])
def test_a_deleted_pod_is_created_again(flavor: str, type_: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.start()
    old = fake_cluster.pod(type_, 0)
    fake_cluster.user_deletes(old["metadata"]["name"])
    assert fake_cluster.step().pods == (), "not while the old one still answers to its name"
    fake_cluster.settle()
    new = fake_cluster.pod(type_, 0)
    assert (new["metadata"]["name"], new["spec"]) == (old["metadata"]["name"], old["spec"])
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "retries" not in fake_cluster.status


@pytest.mark.parametrize("flavor", FLAVORS)
def test_deleted_services_are_created_again(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.start()
    before = set(fake_cluster.services)
    fake_cluster.services.clear()
    fake_cluster.settle()
    assert set(fake_cluster.services) == before


# --- the operator crashes, or its status write gets a conflict


@pytest.mark.parametrize("flavor", FLAVORS)
def test_after_the_first_writes(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.step(status_gets_lost=True)
    assert not fake_cluster.status
    again = fake_cluster.step()
    assert (again.pods, again.services, again.deletions) == ((), (), ())
    assert fake_cluster.status["phase"] == "Creating"
    (event,) = fake_cluster.events
    assert event.message == f"Created 4 of 4 pods: {', '.join(fake_cluster.pods)}"


def test_the_deadline_counts_from_the_first_pod() -> None:
    fake_cluster = FakeCluster(job("v1").run_policy(activeDeadlineSeconds=60))
    fake_cluster.step(status_gets_lost=True)
    fake_cluster.advance(7)
    assert fake_cluster.step().requeue_after == 53


@pytest.mark.parametrize("flavor", FLAVORS)
def test_at_the_end_the_outcome_is_never_lost(flavor: str) -> None:
    made = job(flavor) if flavor == "mpba" else job(flavor).run_policy(cleanPodPolicy="All")
    fake_cluster = FakeCluster(made)
    fake_cluster.start()
    created = list(fake_cluster.created)
    fake_cluster.exit("scheduler", 0, 0)
    for _ in range(3):
        fake_cluster.step(status_gets_lost=True)
    assert "scheduler-0" in fake_cluster.replicas()
    fake_cluster.settle()
    assert (fake_cluster.outcome, fake_cluster.created) == (("Done", "Succeeded"), created)


def test_at_a_failure_the_count_is_never_lost() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.advance(60)
    for _ in range(3):
        fake_cluster.step(status_gets_lost=True)
    assert fake_cluster.attempt("worker", 0) == 0
    fake_cluster.settle()
    assert (fake_cluster.attempt("worker", 0), fake_cluster.status["retries"]) == (1, {"worker-0": 1})


@pytest.mark.parametrize("lost", range(8))
def test_a_lost_status_write_does_not_change_the_outcome(lost: int) -> None:
    """The n-th reconcile of a whole life cycle with a restart loses its status write."""

    def life(lost: int | None) -> FakeCluster:
        fake_cluster = FakeCluster(job("v1alpha1", "Never"))
        steps = 0

        def settle() -> None:
            nonlocal steps
            for _ in range(8):
                fake_cluster.step(status_gets_lost=steps == lost)
                steps += 1
                fake_cluster.kubelet_deletes()

        settle()
        fake_cluster.run_all()
        settle()
        fake_cluster.exit("worker", 1, 1)
        fake_cluster.advance(5)
        settle()
        fake_cluster.run_all()
        settle()
        fake_cluster.exit("scheduler", 0, 0)
        settle()
        return fake_cluster

    expected, found = life(None), life(lost)
    assert found.status == expected.status
    assert sorted(found.pods) == sorted(expected.pods)
    assert found.created == expected.created


@pytest.mark.parametrize("flavor", FLAVORS)
def test_after_an_edit(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.start()
    fake_cluster.edit(lambda spec: entry(spec, "Worker").update(replicas=1))
    fake_cluster.step(status_gets_lost=True)
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["scheduler-0", "server-0", "worker-0"]


# --- a stale cache


def test_a_stale_cache_gives_the_same_names() -> None:
    fake_cluster = FakeCluster(job())
    first, second = fake_cluster.planned(), fake_cluster.planned()
    assert [p["metadata"]["name"] for p in first.pods] == [p["metadata"]["name"] for p in second.pods]
    assert first == second


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_cache_without_the_created_pods(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    stale = fake_cluster.planned()
    fake_cluster.step()
    uids = {p["metadata"]["uid"] for p in fake_cluster.pods.values()}
    fake_cluster.carry_out(stale)
    assert {p["metadata"]["uid"] for p in fake_cluster.pods.values()} == uids, "AlreadyExists"
    assert is_quiet(fake_cluster.step())


def test_a_cache_without_the_replacement() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.advance(60)
    before = copy.deepcopy(fake_cluster.pods)
    fake_cluster.settle()
    assert fake_cluster.attempt("worker", 0) == 1
    now, fake_cluster.pods = fake_cluster.pods, before
    stale = fake_cluster.planned()
    fake_cluster.pods = now
    fake_cluster.carry_out(stale)
    fake_cluster.settle()
    assert (fake_cluster.attempt("worker", 0), fake_cluster.status["retries"]) == (1, {"worker-0": 1})
    assert len([n for n in fake_cluster.created if n.startswith("worker-") and "-0-" in n]) == 2


def test_a_status_from_before_the_count() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    before = copy.deepcopy(fake_cluster.resource)
    fake_cluster.step()
    counted, fake_cluster.resource = fake_cluster.resource, before
    assert fake_cluster.planned().status == counted["status"]
