"""Jobs with a PodGroup of Kubernetes itself, by ``--gang-scheduler-name kubernetes``."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import gang_standing
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler, pod_groups_of
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import MPI, PYTORCH, Resource, grouped, mpijob, mpijob_v1, pytorchjob
from support.fake_cluster import FakeCluster

KIND = "PodGroup.scheduling.k8s.io"
MINE = {"podGroupName": "example-job"}


def cluster(job: Resource, framework: Framework = PYTORCH, name: str = "kubernetes") -> FakeCluster:
    return FakeCluster(job, framework, PlanSettings(gang=gang_scheduler(name)))


def group(made: FakeCluster) -> Resource:
    """The job's group; fails unless there is exactly one."""
    (found,) = made.others[KIND].values()
    return found


def least(made: FakeCluster) -> int:
    count: int = group(made)["spec"]["schedulingPolicy"]["gang"]["minCount"]
    return count


def template(job: Resource, type_: str, **fields: Any) -> Resource:
    """``job`` with these fields in the pods of a type."""
    job["spec"]["pytorchReplicaSpecs"][type_]["template"]["spec"].update(fields)
    return job


def policy(**fields: Any) -> Resource:
    return {"runPolicy": {"schedulingPolicy": fields}}


def until_rest(made: FakeCluster) -> Plan:
    """Reconcile until nothing is left to do, without an end of pods; return the last plan."""
    for _ in range(12):
        done = made.step()
        if not (done.auxiliary_objects or done.pods or done.deletions or done.ensured_objects or done.status):
            return done
    raise AssertionError("it does not come to rest")


def warnings(made: FakeCluster) -> list[str]:
    return [note.message for note in made.events if (note.type, note.reason) == ("Warning", "FailedCreatePod")]


# --- the group and its pods


@pytest.mark.parametrize("name", ["kubernetes", "Kubernetes"])
def test_the_name(name: str) -> None:
    found = gang_scheduler(name)
    assert found is not None
    assert (found.name, found.owned_kind) == ("kubernetes", KIND)


def test_the_group_comes_before_the_pods() -> None:
    made = cluster(pytorchjob(1, 2))
    planned = made.planned()
    (found,) = planned.auxiliary_objects
    assert (found["apiVersion"], found["kind"], len(planned.pods)) == ("scheduling.k8s.io/v1beta1", "PodGroup", 3)
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("PyTorchJob", "example-job", True)
    assert found["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}
    made.start()
    assert made.status["state"] == "Running"
    for pod in made.pods.values():
        assert pod["spec"]["schedulingGroup"] == MINE
        assert pod["spec"]["schedulerName"] == "default-scheduler"


def test_the_scheduler_of_the_template_stays() -> None:
    job = template(template(pytorchjob(1, 1), "Master", schedulerName="mine"), "Worker", schedulerName="mine")
    made = cluster(job)
    made.start()
    assert {pod["spec"]["schedulerName"] for pod in made.pods.values()} == {"mine"}
    assert all(pod["spec"]["schedulingGroup"] == MINE for pod in made.pods.values())


@pytest.mark.parametrize(
    ("job", "of_the_group"),
    [
        (pytorchjob(1, 1), None),
        (pytorchjob(1, 1, **policy(priorityClass="high")), "high"),
        (template(template(pytorchjob(1, 1), "Master", priorityClassName="a"), "Worker", priorityClassName="a"), "a"),
        (template(pytorchjob(1, 1, **policy(priorityClass="b")), "Master", priorityClassName="b"), "b"),
    ],
    ids=["none", "of the policy", "of all templates", "both"],
)
def test_the_priority(job: Resource, of_the_group: str | None) -> None:
    """Kubernetes starts no pod whose priority is not that of its group."""
    made = cluster(job)
    made.start()
    assert group(made)["spec"].get("priorityClassName") == of_the_group
    assert {pod["spec"].get("priorityClassName") for pod in made.pods.values()} == {of_the_group}
    assert made.status["state"] == "Running"


def test_what_the_api_has_no_field_for_is_left_out() -> None:
    made = cluster(pytorchjob(1, **policy(queue="q", minResources={"cpu": 1}, scheduleTimeoutSeconds=9)))
    made.start()
    assert set(group(made)["spec"]) == {"schedulingPolicy", "disruptionMode", "priority"}


def test_the_launchers_job() -> None:
    """The template of its pods has the field, and the Job itself an annotation, by which it counts without a pod."""
    made = cluster(mpijob(1), MPI)
    (launcher,) = (one for one in made.planned().pods if one["kind"] == "Job")
    assert launcher["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "pi"}
    assert launcher["metadata"]["annotations"]["dljob.operator/pod-group"] == "pi"
    made.step()
    made.pods = {}
    assert not any(deletion.kind == "PodGroup" for deletion in made.planned().deletions)


def test_a_template_with_a_group_of_its_own() -> None:
    """A user has made it by hand; the others are a gang without these pods."""
    made = cluster(template(pytorchjob(1, 2), "Worker", schedulingGroup={"podGroupName": "theirs"}))
    made.settle()
    assert least(made) == 1
    assert made.pod("worker", 0)["spec"]["schedulingGroup"] == {"podGroupName": "theirs"}
    assert "schedulerName" not in made.pod("worker", 0)["spec"]


@pytest.mark.parametrize(
    ("labels", "annotations", "spec", "found"),
    [
        ({}, {}, {"schedulingGroup": MINE}, (f"{KIND}/example-job",)),
        ({}, {"dljob.operator/pod-group": "a"}, {}, (f"{KIND}/a",)),
        ({}, {"dljob.operator/pod-group": "a"}, {"nodeName": "n"}, ()),
        (
            {"scheduling.x-k8s.io/pod-group": "x"},
            {"scheduling.k8s.io/group-name": "v"},
            {"schedulingGroup": MINE},
            ("PodGroup.scheduling.x-k8s.io/x", "PodGroup.scheduling.volcano.sh/v", f"{KIND}/example-job"),
        ),
    ],
    ids=["a pod", "a batch Job", "an annotation of a pod", "several"],
)
def test_the_groups_that_name_a_pod(labels: Any, annotations: Any, spec: Any, found: tuple[str, ...]) -> None:
    assert pod_groups_of(labels, annotations, spec) == found


def test_a_job_that_runs_without_a_group_goes_on_without_one() -> None:
    made = FakeCluster(pytorchjob(1, 2), PYTORCH)
    made.start()
    before = {name: pod["metadata"]["uid"] for name, pod in made.pods.items()}
    made.settings = PlanSettings(gang=gang_scheduler("kubernetes"))
    made.settle()
    assert {name: pod["metadata"]["uid"] for name, pod in made.pods.items()} == before
    made.evict("worker", 1)
    made.settle()
    assert not made.others[KIND]
    assert "schedulingGroup" not in made.pod("worker", 1)["spec"]


# --- how many start together


@pytest.mark.parametrize(("available", "count"), [(None, 4), (2, 2), (4, 4), (5, 5), (0, 1)])
def test_how_many_pods_start_together(available: int | None, count: int) -> None:
    made = cluster(pytorchjob(1, 3, **policy(minAvailable=available)))
    made.settle()
    assert least(made) == count


def test_a_replacement_does_not_wait_for_those_that_have_finished() -> None:
    """The scheduler counts unfinished pods only, and of too few it says nothing at all: the count comes first."""
    made = cluster(pytorchjob(1, 3))
    made.start()
    made.exit("worker", 0, 0)
    made.evict("worker", 1)
    for _ in range(12):
        done = made.step()
        if done.pods:
            break
    assert least(made) == 3, "before the pod is made"
    made.start()
    assert made.pod("worker", 1)["status"]["phase"] == "Running"


def test_the_count_and_the_pod_of_one_plan() -> None:
    """A sibling has finished since the last plan: the group is changed first, as an object that the pods need."""
    made = cluster(pytorchjob(1, 3))
    made.start()
    del made.pods["example-job-worker-1"]
    made.exit("worker", 0, 0)
    planned = made.planned()
    assert len(planned.pods) == 1
    (found,) = (one for one in planned.auxiliary_objects if one["kind"] == "PodGroup")
    assert found["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3


def test_elastic_workers() -> None:
    made = cluster(pytorchjob(worker=2, elasticPolicy={"minReplicas": 1, "maxReplicas": 5}))
    made.start()
    for count in (4, 1):
        made.edit(lambda spec, count=count: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=count))
        made.start()
        assert least(made) == count
    assert made.status["state"] == "Running"


def test_a_start_order() -> None:
    made = cluster(mpijob(2, launcherCreationPolicy="WaitForWorkersReady"), MPI)
    made.settle()
    assert least(made) == 2
    made.start()
    assert least(made) == 3
    made.start()
    assert made.status["state"] == "Running"


def test_a_launcher_that_waits_in_its_pod_starts_with_the_gang() -> None:
    made = cluster(mpijob_v1(worker=2), MPI)
    made.settle()
    assert least(made) == 3
    assert all(pod["spec"]["schedulingGroup"] == {"podGroupName": "pi"} for pod in made.pods.values())


# --- jobs whose pods cannot be one gang


def test_templates_of_different_priorities() -> None:
    """Kubernetes would start none of their pods, and say so on each of them again and again."""
    made = cluster(template(pytorchjob(1, 1), "Master", priorityClassName="high"))
    made.settle()
    assert not made.pods
    assert not made.others[KIND]
    reason = made.status["reason"]
    assert reason == (
        "all pods of a gang have the same priorityClassName, but that of spec.pytorchReplicaSpecs.Master.template is "
        "high and that of spec.pytorchReplicaSpecs.Worker.template is not set: no pod is created until they are the "
        "same"
    )
    assert warnings(made) == [reason], "one Event, however often it is reconciled"
    made.edit(lambda spec: spec.update(policy(priorityClass="high")))
    made.start()
    assert (made.status["state"], made.status["reason"], least(made)) == ("Running", "", 2)


@pytest.mark.parametrize("gang", ["volcano", ""])
def test_other_schedulers_take_them(gang: str) -> None:
    made = cluster(template(pytorchjob(1, 1), "Master", priorityClassName="high"), name=gang)
    made.start()
    assert made.status["state"] == "Running"


def test_templates_with_different_schedulers() -> None:
    made = cluster(template(pytorchjob(1, 1), "Worker", schedulerName="mine"))
    made.settle()
    assert not made.pods
    assert "the same schedulerName, but" in made.status["reason"]
    assert "Worker.template is mine" in made.status["reason"]


def test_a_group_of_replicas_of_another_priority() -> None:
    job = grouped(pytorchjob(1, 2), "Worker", spare=(1, {}))
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"][0]["template"]["spec"]["priorityClassName"] = "low"
    made = cluster(job)
    made.settle()
    assert not made.pods
    assert "groups[0].template is low" in made.status["reason"]


def test_an_edit_that_makes_a_gang_impossible_deletes_no_group_with_pods() -> None:
    made = cluster(pytorchjob(1, 1, **policy(priorityClass="high")))
    for entry in made.resource["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = "OnFailure"
    made.start()
    uid = group(made)["metadata"]["uid"]
    made.edit(lambda spec: template({"spec": spec}, "Worker", priorityClassName="other"))
    made.settle()
    assert made.replicas() == ["master-0"], "the worker's new pod waits"
    assert "all pods of a gang have the same priorityClassName" in made.status["reason"]
    assert group(made)["metadata"]["uid"] == uid
    assert "deletionTimestamp" not in group(made)["metadata"]


# --- what cannot change in a group


def test_another_priority_applies_once_no_pod_is_left() -> None:
    """The pods that go on keep theirs, and so do the new ones beside them: it is no reason to replace a pod."""
    made = cluster(pytorchjob(1, 2, **policy(priorityClass="high")))
    made.start()
    uid = group(made)["metadata"]["uid"]
    made.edit(lambda spec: spec["runPolicy"]["schedulingPolicy"].update(priorityClass="low"))
    until_rest(made)
    made.evict("worker", 0)
    made.start()
    assert made.pod("worker", 0)["spec"]["priorityClassName"] == "high"
    assert (group(made)["metadata"]["uid"], made.status["state"]) == (uid, "Running")
    made.pods = {}
    assert [deletion.kind for deletion in made.planned().deletions] == ["PodGroup"]
    assert not made.planned().pods
    made.start()
    assert group(made)["spec"]["priorityClassName"] == "low"
    assert {pod["spec"]["priorityClassName"] for pod in made.pods.values()} == {"low"}
    assert made.status["state"] == "Running"


def test_no_priority_after_one() -> None:
    made = cluster(pytorchjob(1, 1))
    made.start()
    made.edit(lambda spec: spec.update(policy(priorityClass="low")))
    until_rest(made)
    made.evict("worker", 0)
    made.start()
    assert "priorityClassName" not in made.pod("worker", 0)["spec"]


def test_another_priority_in_all_templates_replaces_the_group() -> None:
    made = cluster(pytorchjob(1, 1))
    made.start()
    uid = group(made)["metadata"]["uid"]

    def change(spec: Any) -> None:
        for type_ in ("Master", "Worker"):
            template({"spec": spec}, type_, priorityClassName="low")

    made.edit(change)
    made.start()
    assert group(made)["metadata"]["uid"] != uid
    assert group(made)["spec"]["priorityClassName"] == "low"
    assert (made.status["state"], made.status["reason"]) == ("Running", "")


def test_a_new_pod_that_cannot_be_beside_those_that_go_on() -> None:
    made = cluster(pytorchjob(1, 1, **policy(priorityClass="low")))
    made.start()

    def change(spec: Any) -> None:
        template({"spec": spec}, "Master", priorityClassName="high")
        spec["runPolicy"]["schedulingPolicy"]["priorityClass"] = "high"

    made.edit(change)
    made.settle()
    assert made.replicas() == ["worker-0"]
    assert made.status["reason"].startswith(
        "priorityClassName of spec.pytorchReplicaSpecs.Master.template is high, and the pods of the job's gang that "
        "go on have low: new pods wait until these have ended"
    )
    made.pods = {}
    made.start()
    assert (made.replicas(), group(made)["spec"]["priorityClassName"]) == (["master-0", "worker-0"], "high")


def test_a_group_that_another_operator_has_made_is_made_anew() -> None:
    """Its policy, which cannot change, may be another one."""
    made = cluster(pytorchjob(1, 1))
    made.step()
    made.pods = {}
    found = group(made)
    del found["metadata"]["annotations"]["dljob.operator/gang"]
    found["spec"] = {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}}
    made.start()
    assert group(made)["spec"]["disruptionMode"] == {"all": {}}
    assert made.status["state"] == "Running"


# --- the end of a group


@pytest.mark.parametrize("clean", ["None", "Running", "All"])
def test_a_finished_job_has_no_group(clean: str) -> None:
    made = cluster(pytorchjob(1, 1, runPolicy={"cleanPodPolicy": clean}))
    made.start()
    made.exit("master", 0, 0)
    made.exit("worker", 0, 0)
    made.settle()
    made.settle()
    assert made.status["state"] == "Succeeded"
    assert not made.others[KIND]


def test_the_group_of_a_finished_job_terminates_as_long_as_pods_run_on() -> None:
    """Those that cleanPodPolicy None keeps. It is deleted once, and nothing else is left to do."""
    made = cluster(mpijob(1, runPolicy={"cleanPodPolicy": "None"}), MPI)
    made.start()
    made.exit("launcher", 0, 0)
    made.settle()
    assert made.status["state"] == "Succeeded"
    assert group(made)["metadata"]["deletionTimestamp"]
    assert not made.planned().deletions
    made.exit("worker", 0, 0)
    made.settle()
    assert not made.others[KIND]


def test_a_suspended_job_has_no_group() -> None:
    """It terminates until the last pod has ended, and is not deleted again and again meanwhile."""
    made = cluster(pytorchjob(1, 1))
    made.start()
    made.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    done = until_rest(made)
    assert group(made)["metadata"]["deletionTimestamp"]
    assert not done.deletions
    made.settle()
    made.settle()
    assert (made.pods, made.others[KIND]) == ({}, {})


def test_a_group_that_terminates_is_waited_for() -> None:
    made = cluster(pytorchjob(1, 1))
    made.start()
    made.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    until_rest(made)
    made.kubelet_deletes()
    made.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    planned = made.planned()
    assert (planned.pods, planned.auxiliary_objects) == ((), ())
    assert planned.status is not None
    assert planned.status["reason"] == "waiting until PodGroup/example-job, which terminates, is gone"
    assert planned.requeue_after is not None
    assert planned.requeue_after <= gang_standing.RETRY
    made.start()
    assert (made.status["state"], made.status["reason"]) == ("Running", "")


def test_a_group_that_a_user_deletes_is_used_while_pods_go_on() -> None:
    made = cluster(pytorchjob(1, 3))
    made.start()
    made.api.request("DELETE", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/example-job")
    uid = group(made)["metadata"]["uid"]
    made.exit("worker", 0, 0)
    made.settle()
    made.evict("worker", 1)
    made.settle()
    assert (made.planned().still_used, least(made)) == ((uid,), 3)
    made.start()
    assert made.pod("worker", 1)["status"]["phase"] == "Running"


# --- what Kubernetes does not say


@pytest.mark.parametrize(
    ("available", "running", "text"),
    [
        (6, False, "4 of 6 pods of the gang exist, and the scheduler starts none before the others"),
        (None, False, "4 of 4 pods of the gang wait for their scheduler, which gives no cause"),
        (2, True, "2 of 4 pods of the gang wait for their scheduler, which gives no cause"),
    ],
)
def test_pods_of_which_the_scheduler_says_nothing(available: int | None, running: bool, text: str) -> None:
    made = cluster(pytorchjob(1, 3, **policy(minAvailable=available)))
    made.settle()
    if running:
        made.run("master", 0)
        made.run("worker", 0)
        made.settle()
    assert made.status["reason"] == ""
    assert made.planned().requeue_after == gang_standing.SILENT, "it looks again, since no event follows"
    made.advance(gang_standing.SILENT)
    made.settle()
    assert made.status["reason"] == text
    assert made.planned().requeue_after is None


def test_the_cause_of_a_gang_that_does_not_fit() -> None:
    """The scheduler gives it with one pod; of the others it repeats that the gang does not fit."""
    made = cluster(pytorchjob(1, 2))
    made.settle()
    echo = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
    cause = "0/2 nodes are available: 2 Insufficient cpu."
    for name, pod in made.pods.items():
        message = cause if name.endswith("worker-1") else echo
        pod["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        ]
    made.settle()
    assert made.status["reason"] == f"example-job-worker-1: Unschedulable: {cause}"


def test_without_the_option_nothing_is_said() -> None:
    made = FakeCluster(pytorchjob(1, 2), PYTORCH)
    made.settle()
    made.advance(60)
    made.settle()
    assert made.status["reason"] == ""
