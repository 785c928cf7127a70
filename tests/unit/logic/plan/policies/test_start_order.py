"""starts_after: a replica type waits for others to be ready or to complete."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import startup_policy
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import ECHO_DECLARATION, echo_framework, echojob, mxjob
from support.fake_cluster import FakeCluster


def cluster_with(state: str, **job: Any) -> FakeCluster:
    types = {"Leader": {"minimum": 1, "maximum": 1}, "Follower": {"starts_after": {"Leader": state}}}
    return FakeCluster(echojob(2, **job), echo_framework(replica_types=types, success_target=["Follower"]))


def created(cluster: FakeCluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in cluster.planned().pods)


def test_until_the_others_are_ready() -> None:
    cluster = cluster_with("ready")
    assert created(cluster) == ["hello-leader-0"]
    cluster.step()
    assert created(cluster) == []
    cluster.run("leader", 0)
    assert created(cluster) == ["hello-follower-0", "hello-follower-1"]


def test_until_the_others_have_completed() -> None:
    cluster = cluster_with("completed")
    cluster.step()
    cluster.run("leader", 0)
    assert created(cluster) == []
    cluster.exit("leader", 0, 0)
    assert created(cluster) == ["hello-follower-0", "hello-follower-1"]


@pytest.mark.parametrize(("order", "waits"), [("InTurn", True), ("AtOnce", False), (None, False)])
def test_only_for_jobs_that_ask_for_it(order: str | None, waits: bool) -> None:
    after = {"starts_after": {"Leader": "ready"}, "starts_after_if": {"order": "InTurn"}}
    types = {"Leader": {"minimum": 1, "maximum": 1}, "Follower": after}
    flavor = {**ECHO_DECLARATION["flavors"][0], "fields": {"order": {"type": "string", "x-dljob-affects": "objects"}}}
    framework = echo_framework(replica_types=types, success_target=["Follower"], flavors=[flavor])
    cluster = FakeCluster(echojob(1, **({"order": order} if order else {})), framework)
    assert created(cluster) == [*([] if waits else ["hello-follower-0"]), "hello-leader-0"]


@pytest.mark.parametrize(
    ("waiting", "text"),
    [
        ([], ""),
        (["Server"], ""),
        (["Scheduler"], "Scheduler starts once all replicas of Other are ready"),
        (["Server", "Worker"], "Worker starts once all replicas of Other are ready"),
        (["Chief", "Worker", "Scheduler"], "Worker starts once all replicas of Other are ready"),
    ],
)
def test_the_reason_is_about_a_type_that_has_replicas(waiting: list[str], text: str) -> None:
    job = mxjob().v1().scheduler(1).servers(0).workers(2).job()
    assert (
        startup_policy.reason([startup_policy.Wait(type_, "Other", "ready") for type_ in waiting], job, Observed(), {})
        == text
    )


@pytest.mark.parametrize(
    ("states", "after"), [(["created"], set()), (["ready"], {"Launcher"}), (["created", "running"], {"Launcher"})]
)
def test_a_type_that_only_waits_for_pods_to_exist_starts_with_the_gang(states: list[str], after: set[str]) -> None:
    assert (
        startup_policy.types_after_gang([startup_policy.Wait("Launcher", "Worker", state) for state in states]) == after
    )


def test_a_type_that_the_job_does_not_have_delays_none() -> None:
    types = {"Leader": {"minimum": 1, "maximum": 1}, "Helper": {}, "Follower": {"starts_after": {"Helper": "ready"}}}
    cluster = FakeCluster(echojob(1), echo_framework(replica_types=types))
    assert created(cluster) == ["hello-follower-0", "hello-leader-0"]


def test_those_that_run_stay_when_the_others_are_no_longer_ready() -> None:
    cluster = cluster_with("ready")
    cluster.step()
    cluster.run("leader", 0)
    cluster.step()
    cluster.pod("leader", 0)["status"]["conditions"] = []
    assert cluster.planned().deletions == ()
    cluster.user_deletes("hello-follower-0")
    cluster.kubelet_deletes()
    assert created(cluster) == [], "a new pod waits again"


@pytest.mark.parametrize("state", ["ready", "completed"])
def test_the_job_is_not_running_before_all_are_up(state: str) -> None:
    cluster = cluster_with(state)
    cluster.step()
    cluster.run("leader", 0)
    cluster.step()
    assert cluster.status["phase"] == "Creating"
