"""The PodGroup of a job for a gang scheduler, and the pods that belong to it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import (
    ANNOTATION_TASK,
    gang_scheduler,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import MPI, PYTORCH, Resource, grouped, mpijob, mpijob_v1, pytorchjob
from support.fake_cluster import FakeCluster

PLUGINS, VOLCANO = "scheduler-plugins-scheduler", "volcano"
KINDS = {PLUGINS: "PodGroup.scheduling.x-k8s.io", VOLCANO: "PodGroup.scheduling.volcano.sh"}
BOTH = pytest.mark.parametrize("scheduler", [PLUGINS, VOLCANO])


def torchjob(worker: int = 0, **spec: Any) -> Resource:
    """A PyTorchJob with a master."""
    return pytorchjob(1, worker, **spec)


def cluster(job: Resource, scheduler: str = PLUGINS, framework: Framework = PYTORCH) -> FakeCluster:
    return FakeCluster(job, framework, PlanSettings(gang=gang_scheduler(scheduler)))


def group(made: FakeCluster) -> Resource:
    """The job's PodGroup; fails unless there is exactly one, of the operator's scheduler."""
    assert made.settings.gang is not None
    (found,) = (one for kind in KINDS.values() for one in made.others[kind].values())
    assert f"PodGroup.{found['apiVersion'].partition('/')[0]}" == made.settings.gang.owned_kind
    return found


def has_group(made: FakeCluster) -> bool:
    return any(made.others[kind] for kind in KINDS.values())


def policy(**fields: Any) -> Resource:
    return {"runPolicy": {"schedulingPolicy": fields}}


def resources(job: Resource, type_: str, **given: Any) -> Resource:
    job["spec"]["pytorchReplicaSpecs"][type_]["template"]["spec"]["containers"][0]["resources"] = given
    return job


@pytest.mark.parametrize("text", ["Volcano", "volcano", "scheduler-plugins-scheduler", ""])
def test_the_names_of_training_operator(text: str) -> None:
    found = gang_scheduler(text)
    assert (found.name if found else "") == ("volcano" if text == "Volcano" else text)


@pytest.mark.parametrize("text", ["Scheduler", "a b", "-a", "a" * 254, "a\n"])
def test_a_text_that_is_no_name_of_a_scheduler(text: str) -> None:
    with pytest.raises(ValueError, match="is no schedulerName; write volcano"):
        gang_scheduler(text)


def test_without_a_scheduler_there_is_no_group() -> None:
    made = FakeCluster(torchjob(worker=2, **policy(minAvailable=2)), PYTORCH)
    made.start()
    assert not has_group(made)
    assert all("schedulerName" not in pod["spec"] for pod in made.pods.values())


@BOTH
def test_the_group_is_made_before_the_pods(scheduler: str) -> None:
    made = cluster(torchjob(worker=2), scheduler)
    planned = made.planned()
    (found,) = planned.auxiliary_objects
    assert (found["kind"], found["metadata"]["name"], len(planned.pods)) == ("PodGroup", "example-job", 3)
    assert found["metadata"]["ownerReferences"][0]["kind"] == "PyTorchJob"
    made.start()
    assert group(made)["spec"]["minMember"] == 3
    assert made.status["state"] == "Running"


def test_the_pods_of_the_coscheduling_plugin() -> None:
    made = cluster(torchjob(worker=1))
    made.start()
    for pod in made.pods.values():
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "example-job"
        assert "scheduling.k8s.io/group-name" not in pod["metadata"]["annotations"]
        assert pod["spec"]["schedulerName"] == PLUGINS


def test_the_pods_of_volcano() -> None:
    made = cluster(torchjob(worker=1), VOLCANO)
    made.start()
    annotations = made.pod("worker", 0)["metadata"]["annotations"]
    assert annotations["scheduling.k8s.io/group-name"] == "example-job"
    assert annotations["volcano.sh/task-spec"] == "worker"
    assert made.pod("worker", 0)["spec"]["schedulerName"] == VOLCANO


@BOTH
def test_a_replica_with_another_scheduler_does_not_count(scheduler: str) -> None:
    """The gang scheduler does not see when it starts, and would wait for it."""
    job = torchjob(worker=2)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "own"
    made = cluster(job, scheduler)
    (first,) = made.planned().auxiliary_objects
    made.start()
    assert first["spec"] == group(made)["spec"]
    worker = made.pod("worker", 0)
    assert worker["spec"]["schedulerName"] == "own"
    assert "scheduling.x-k8s.io/pod-group" not in worker["metadata"]["labels"]
    assert "scheduling.k8s.io/group-name" not in worker["metadata"]["annotations"]
    assert made.pod("master", 0)["spec"]["schedulerName"] == scheduler
    assert group(made)["spec"]["minMember"] == 1


def test_the_name_in_training_operators_documentation_takes_pods_of_any_scheduler() -> None:
    """Its tests start it with scheduler-plugins, and their templates name scheduler-plugins-scheduler."""
    job = torchjob(worker=1)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = PLUGINS
    made = cluster(job, "scheduler-plugins")
    made.start()
    assert group(made)["spec"]["minMember"] == 2
    names = {name: pod["spec"]["schedulerName"] for name, pod in made.pods.items()}
    assert names == {"example-job-master-0": "scheduler-plugins", "example-job-worker-0": PLUGINS}
    for pod in made.pods.values():
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "example-job"
    made.settle()
    assert has_group(made)


@BOTH
def test_a_job_that_leaves_all_pods_to_another_scheduler_has_no_group(scheduler: str) -> None:
    job = torchjob(worker=1)
    for entry in job["spec"]["pytorchReplicaSpecs"].values():
        entry["template"]["spec"]["schedulerName"] = "own"
    made = cluster(job, scheduler)
    made.start()
    assert not has_group(made)


@pytest.mark.parametrize(("available", "members"), [(None, 4), (2, 2), (4, 4), (5, 5), (0, 1)])
def test_how_many_pods_start_together(available: int | None, members: int) -> None:
    made = cluster(torchjob(worker=3, **policy(minAvailable=available)))
    made.start()
    assert group(made)["spec"]["minMember"] == members


def test_more_than_all_replicas_counts_also_when_some_have_succeeded() -> None:
    """As in training-operator the job waits until somebody lowers the number."""
    made = cluster(torchjob(worker=3, **policy(minAvailable=5)))
    made.start()
    made.exit("worker", 0, 0)
    made.settle()
    assert group(made)["spec"]["minMember"] == 5
    made.edit(lambda spec: spec["runPolicy"]["schedulingPolicy"].update(minAvailable=4))
    made.settle()
    assert group(made)["spec"]["minMember"] == 3


def test_what_the_members_request() -> None:
    job = resources(torchjob(worker=2), "Worker", requests={"cpu": "500m", "memory": "1.5Gi"}, limits={"memory": "2Gi"})
    resources(job, "Master", limits={"cpu": 1, "example.com/gpu": "1"})
    made = cluster(job)
    made.start()
    assert group(made)["spec"]["minResources"] == {"cpu": "2", "memory": "3221225472", "example.com/gpu": "1"}


def test_what_fewer_members_request() -> None:
    """Those that the job names first."""
    job = resources(torchjob(worker=3, **policy(minAvailable=2)), "Worker", requests={"cpu": "100m"})
    made = cluster(resources(job, "Master", requests={"cpu": "1"}))
    made.start()
    assert group(made)["spec"]["minResources"] == {"cpu": "1.1"}


def test_init_containers_and_sidecars() -> None:
    job = resources(torchjob(), "Master", requests={"cpu": "1", "memory": "1Gi"})
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["initContainers"] = [
        {"name": "log", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "data", "resources": {"requests": {"cpu": "100m", "memory": "4Gi"}}},
        {"name": "none"},
    ]
    made = cluster(job)
    made.start()
    assert group(made)["spec"]["minResources"] == {"cpu": "1.25", "memory": "4294967296"}


@pytest.mark.parametrize(
    "given", [[{"resources": [1]}], [{"resources": {"limits": None}}], [{"resources": {"limits": {"cpu": None}}}]]
)
def test_containers_that_the_api_server_will_refuse(given: Any) -> None:
    job = torchjob()
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["initContainers"] = given
    made = cluster(job)
    (found,) = made.planned().auxiliary_objects
    assert found["spec"] == {"minMember": 1}


def test_the_fields_of_the_coscheduling_plugin() -> None:
    made = cluster(torchjob(**policy(minResources={"cpu": 3}, scheduleTimeoutSeconds=30, queue="q", priorityClass="p")))
    made.start()
    found = group(made)
    assert found["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert found["spec"] == {"minMember": 1, "minResources": {"cpu": 3}, "scheduleTimeoutSeconds": 30}
    assert made.pod("master", 0)["spec"]["priorityClassName"] == "p"


def test_the_fields_of_volcano() -> None:
    made = cluster(torchjob(**policy(scheduleTimeoutSeconds=30, queue="q", priorityClass="p")), VOLCANO)
    made.start()
    found = group(made)
    assert found["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    assert found["spec"] == {"minMember": 1, "queue": "q", "priorityClassName": "p"}


@pytest.mark.parametrize(
    ("annotations", "queue"), [(None, None), ({"scheduling.volcano.sh/queue-name": "of-mpi"}, "of-mpi")]
)
def test_volcanos_queue_of_a_job_that_names_none(annotations: Any, queue: str | None) -> None:
    """Without a name Volcano decides."""
    job = torchjob()
    job["metadata"]["annotations"] = annotations
    made = cluster(job, VOLCANO)
    made.start()
    assert group(made)["spec"].get("queue") == queue


def test_the_group_has_the_jobs_annotations_for_schedulers() -> None:
    job = torchjob()
    job["metadata"]["annotations"] = {"volcano.sh/preemptable": "true", "example.com/other": "1"}
    made = cluster(job, VOLCANO)
    made.start()
    annotations = group(made)["metadata"]["annotations"]
    assert annotations["volcano.sh/preemptable"] == "true"
    assert "example.com/other" not in annotations


@BOTH
@pytest.mark.parametrize("clean", ["None", "Running", "All"])
def test_a_finished_job_has_no_group(scheduler: str, clean: str) -> None:
    made = cluster(torchjob(worker=1, runPolicy={"cleanPodPolicy": clean}), scheduler)
    made.start()
    assert has_group(made)
    made.exit("master", 0, 0)
    made.exit("worker", 0, 0)
    made.settle()
    assert made.status["state"] == "Succeeded"
    assert not has_group(made)


@BOTH
def test_a_suspended_job_has_no_group_until_it_is_resumed(scheduler: str) -> None:
    made = cluster(torchjob(worker=1), scheduler)
    made.start()
    made.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    made.settle()
    assert (has_group(made), made.pods) == (False, {})
    made.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    made.start()
    assert group(made)["spec"]["minMember"] == 2
    assert made.status["state"] == "Running"


@BOTH
def test_a_deleted_group_is_made_again(scheduler: str) -> None:
    made = cluster(torchjob(worker=1), scheduler)
    made.start()
    made.api.objects["default", "podgroups"].clear()
    made.settle()
    assert has_group(made)


def test_a_replica_that_restarts_does_not_wait_for_those_that_have_succeeded() -> None:
    """The scheduler counts no pod that has ended: the group of all could not be complete again."""
    made = cluster(torchjob(worker=3))
    made.start()
    made.exit("worker", 0, 0)
    made.settle()
    made.evict("worker", 1)
    made.settle()
    assert group(made)["spec"]["minMember"] == 3
    assert made.pod("worker", 1)["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "example-job"


def test_a_replica_that_has_succeeded_does_not_count_without_its_pod_either() -> None:
    made = cluster(torchjob(worker=3))
    made.start()
    made.exit("worker", 0, 0)
    made.settle()
    del made.pods["example-job-worker-0"]
    made.evict("worker", 1)
    made.settle()
    assert made.replicas() == ["master-0", "worker-1", "worker-2"]
    assert group(made)["spec"]["minMember"] == 3


def test_a_replica_that_restarts_does_not_wait_for_one_that_has_failed_for_good() -> None:
    policy = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3}}
    job = pytorchjob(worker=3, **policy)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    made = cluster(job)
    made.start()
    made.exit("worker", 2, 1)
    made.settle()
    made.evict("worker", 1)
    made.settle()
    made.settle()
    assert made.status["state"] == "Running"
    assert group(made)["spec"]["minMember"] == 2


def test_resources_that_the_user_gives_are_for_all_replicas() -> None:
    """A replica that restarts needs its own only, once others have succeeded."""
    job = resources(torchjob(worker=2, **policy(minResources={"cpu": 9})), "Worker", requests={"cpu": 1})
    made = cluster(job)
    made.start()
    assert group(made)["spec"]["minResources"] == {"cpu": 9}
    made.exit("worker", 0, 0)
    made.settle()
    assert group(made)["spec"]["minResources"] == {"cpu": "1"}


def test_the_alpha_name_of_gpus_is_no_resource_of_the_group() -> None:
    """Nodes of today have another name, which the pods get."""
    job = resources(torchjob(), "Master", limits={"alpha.kubernetes.io/nvidia-gpu": 1, "cpu": 1})
    made = cluster(job)
    made.start()
    assert group(made)["spec"]["minResources"] == {"cpu": "1"}


def test_the_group_of_a_job_with_a_start_order_grows() -> None:
    """A group of all replicas would never be complete, because some of them wait for others to run."""
    job = mpijob(2, launcherCreationPolicy="WaitForWorkersReady")
    for type_, cpu in (("Launcher", "1"), ("Worker", "2")):
        container = job["spec"]["mpiReplicaSpecs"][type_]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": cpu}}
    made = cluster(job, framework=MPI)
    made.settle()
    # the launcher's room is reserved: else two jobs whose workers run could wait for it for ever
    assert group(made)["spec"] == {"minMember": 2, "minResources": {"cpu": "5"}}
    made.run_all()
    made.settle()
    assert group(made)["spec"] == {"minMember": 3, "minResources": {"cpu": "5"}}


def test_a_group_whose_only_member_waits_for_others_has_room_for_one() -> None:
    """The others have another scheduler. A group of no pods would start each by itself."""
    job = mpijob(2, launcherCreationPolicy="WaitForWorkersReady")
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "own"
    made = cluster(job, framework=MPI)
    made.settle()
    assert sorted(made.pods) == ["pi-worker-0", "pi-worker-1"]
    assert group(made)["spec"]["minMember"] == 1


@BOTH
def test_a_launcher_that_waits_in_its_pod_starts_with_the_gang(scheduler: str) -> None:
    """MPIJobs of v1. Were it created later, the workers of two jobs could leave no room for a launcher."""
    made = cluster(mpijob_v1(worker=2), scheduler, MPI)
    made.step()
    assert sorted(made.pods) == ["pi-worker-0", "pi-worker-1"]
    assert group(made)["spec"]["minMember"] == 3, "the scheduler waits for the launcher"
    made.step()
    assert sorted(made.pods) == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    (role,) = made.others["Role"].values()
    assert role["rules"][1]["resourceNames"] == ["pi-worker-0", "pi-worker-1"], "before the launcher's pod"
    made.settle()
    assert group(made)["spec"]["minMember"] == 3


def test_a_launcher_of_the_gang_waits_for_each_worker_to_exist() -> None:
    """Its Role names those that exist, and is written with its pod."""
    made = cluster(mpijob_v1(worker=2), framework=MPI)
    made.step()
    del made.pods["pi-worker-1"]
    assert [pod["metadata"]["name"] for pod in made.planned().pods] == ["pi-worker-1"]
    assert group(made)["spec"]["minMember"] == 3


def test_a_startup_policy_still_holds_a_launcher_back() -> None:
    job = mpijob_v1(worker=1)
    job["spec"]["runPolicy"] = {
        "startupPolicy": {"dependsOn": {"Launcher": [{"replicaType": "Worker", "condition": "Running"}]}}
    }
    made = cluster(job, framework=MPI)
    made.settle()
    assert sorted(made.pods) == ["pi-worker-0"]
    assert group(made)["spec"]["minMember"] == 1, "a group with the launcher would never be complete"
    made.start()
    assert sorted(made.pods) == ["pi-launcher", "pi-worker-0"]
    assert group(made)["spec"]["minMember"] == 2


@BOTH
def test_the_launchers_job_has_a_pod_of_the_group(scheduler: str) -> None:
    """Before the Job has a pod too: without that, its reconcile would delete the group."""
    made = cluster(mpijob(1), scheduler, MPI)
    planned = made.planned()
    (launcher,) = (one for one in planned.pods if one["kind"] == "Job")
    assert launcher["spec"]["template"]["spec"]["schedulerName"] == scheduler
    made.carry_out(planned)
    made.pods = {}
    assert not any(deletion.kind == "PodGroup" for deletion in made.planned().deletions)


@BOTH
def test_a_job_that_runs_without_a_group_goes_on_without_one(scheduler: str) -> None:
    """An operator that gets a gang scheduler: a pod that is replaced would wait for members that do not exist."""
    made = FakeCluster(torchjob(worker=2), PYTORCH)
    made.start()
    made.settings = PlanSettings(gang=gang_scheduler(scheduler))
    made.settle()
    made.evict("worker", 1)
    made.settle()
    assert not has_group(made)
    assert "schedulerName" not in made.pod("worker", 1)["spec"]


@pytest.mark.parametrize(
    ("scheduler", "field", "name"),
    [
        (PLUGINS, "labels", "scheduling.x-k8s.io/pod-group"),
        (VOLCANO, "annotations", "scheduling.k8s.io/group-name"),
    ],
)
def test_the_pods_of_another_group_do_not_count(scheduler: str, field: str, name: str) -> None:
    """Volcano makes groups for pods that have none, and users have made their own."""
    made = FakeCluster(torchjob(worker=2), PYTORCH)
    made.start()
    for pod in made.pods.values():
        pod["metadata"].setdefault(field, {})[name] = "mine"
    made.settings = PlanSettings(gang=gang_scheduler(scheduler))
    made.settle()
    made.evict("worker", 1)
    made.settle()
    assert not has_group(made)


def test_a_pod_without_the_group_does_not_count() -> None:
    """A replica that restarted while the operator had no gang scheduler."""
    made = cluster(torchjob(worker=2))
    made.start()
    del made.pod("worker", 0)["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"]
    made.evict("worker", 1)
    made.settle()
    assert group(made)["spec"]["minMember"] == 2
    assert made.pod("worker", 1)["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "example-job"


def test_a_group_that_grows_does_so_before_the_new_pods() -> None:
    """Else its scheduler starts them one by one, because the old group is complete."""
    made = cluster(mpijob(2, launcherCreationPolicy="WaitForWorkersReady"), framework=MPI)
    made.settle()
    made.run_all()
    planned = made.planned()
    assert len(planned.pods) == 1
    assert [one["spec"]["minMember"] for one in planned.auxiliary_objects if one["kind"] == "PodGroup"] == [3]
    assert not any(one["kind"] == "PodGroup" for one in planned.ensured_objects)


def test_enabling_a_scheduler_restarts_no_pod() -> None:
    made = FakeCluster(torchjob(worker=2), PYTORCH)
    made.start()
    before = {name: pod["metadata"]["uid"] for name, pod in made.pods.items()}
    made.settings = PlanSettings(gang=gang_scheduler(PLUGINS))
    made.settle()
    assert {name: pod["metadata"]["uid"] for name, pod in made.pods.items()} == before


def test_the_group_of_another_scheduler_does_not_count() -> None:
    made = cluster(torchjob(worker=1), VOLCANO)
    made.start()
    made.settings = PlanSettings(gang=gang_scheduler(PLUGINS))
    assert not made.planned().auxiliary_objects
    assert not any(one["kind"] == "PodGroup" for one in made.planned().ensured_objects)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("minAvailable", -1, "minAvailable is -1: it must be between 0 and 2147483647"),
        ("minAvailable", True, "minAvailable must be a whole number, not "),
        ("minAvailable", "2", "minAvailable must be a whole number, not "),
        ("scheduleTimeoutSeconds", 2**31, "scheduleTimeoutSeconds is 2147483648: it must be between 0 and"),
        ("queue", 1, "queue must be a string, not 1"),
        ("priorityClass", {}, "priorityClass must be a string, not {}"),
        ("minResources", [1], "minResources must be a map of quantities by name"),
        ("minResources", {"cpu": "much"}, "minResources[cpu]: 'much' is no quantity: write for example 500m or 4Gi"),
    ],
)
def test_what_the_policy_cannot_be(field: str, value: Any, text: str) -> None:
    with pytest.raises(InvalidJob) as error:
        parse_job(torchjob(**policy(**{field: value})), PYTORCH)
    assert f"spec.runPolicy.schedulingPolicy.{text}" in str(error.value)


def test_a_policy_that_is_no_map() -> None:
    with pytest.raises(InvalidJob, match="schedulingPolicy must be a map"):
        parse_job(torchjob(runPolicy={"schedulingPolicy": 1}), PYTORCH)


# --- groups of replicas, which have templates of their own


def of_groups(**spec: Any) -> Resource:
    """A master of 1 CPU, and five workers: two of 8 CPUs, two of 4, and one of 2."""
    job = resources(resources(torchjob(5, **spec), "Master", requests={"cpu": 1}), "Worker", requests={"cpu": 2})
    many, some = ({"resources": {"requests": {"cpu": count}}} for count in (8, 4))
    return grouped(job, "Worker", large=(2, many), small=(2, some))


@pytest.mark.parametrize(("minimum", "cpus"), [(None, "27"), (1, "1"), (3, "17"), (5, "25"), (6, "27")])
def test_the_requests_of_each_replicas_own_template(minimum: int | None, cpus: str) -> None:
    made = cluster(of_groups(**({} if minimum is None else policy(minAvailable=minimum))))
    made.start()
    assert group(made)["spec"] == {"minMember": minimum or 6, "minResources": {"cpu": cpus}}


def test_a_group_that_another_scheduler_starts_does_not_count() -> None:
    job = of_groups()
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    worker["groups"][0]["template"]["spec"]["schedulerName"] = "other"
    made = cluster(job, VOLCANO)
    made.start()
    assert group(made)["spec"] == {"minMember": 4, "minResources": {"cpu": "11"}}
    schedulers = [made.pod("worker", index)["spec"]["schedulerName"] for index in range(5)]
    assert schedulers == ["other", "other", VOLCANO, VOLCANO, VOLCANO]
    tasks = [made.pod("worker", index)["metadata"]["annotations"].get(ANNOTATION_TASK) for index in range(5)]
    assert tasks == [None, None, "worker", "worker", "worker"]


def test_one_group_may_be_all_that_the_scheduler_starts() -> None:
    job = of_groups()
    for entry in job["spec"]["pytorchReplicaSpecs"].values():
        entry["template"]["spec"]["schedulerName"] = "other"
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"][1]["template"]["spec"]["schedulerName"] = "other"
    made = cluster(job)
    made.start()
    assert group(made)["spec"] == {"minMember": 2, "minResources": {"cpu": "16"}}


def test_a_completed_replica_of_a_group_counts_no_more() -> None:
    made = cluster(of_groups())
    made.start()
    made.exit("worker", 1, 0)
    made.settle()
    assert group(made)["spec"] == {"minMember": 5, "minResources": {"cpu": "19"}}


def two_schedulers(worker: int, other: int, **spec: Any) -> FakeCluster:
    """A job without a master whose group `a` of workers has a scheduler of its own."""
    job = grouped(pytorchjob(0, worker, **spec), "Worker", a=(other, {}))
    entry = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    entry["groups"][0]["template"]["spec"]["schedulerName"] = "other"
    return FakeCluster(job, PYTORCH, PlanSettings(gang=gang_scheduler(VOLCANO), largest_slice=3))


def schedulers(made: FakeCluster) -> list[str]:
    return [pod["spec"].get("schedulerName") for _, pod in sorted(made.pods.items())]


def test_pods_of_another_scheduler_alone_end_no_group() -> None:
    """The first slice has only these. The next ones were then created without the group, which was deleted."""
    made = two_schedulers(5, 3)
    made.start()
    assert schedulers(made) == ["other"] * 3 + [VOLCANO] * 2
    assert group(made)["spec"]["minMember"] == 2


@pytest.mark.parametrize("scope", ["Replica", "Job"])
def test_nor_does_an_edit_of_the_others(scope: str) -> None:
    made = two_schedulers(4, 2, runPolicy={"restartScope": scope})
    for entry in made.resource["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = "OnFailure"
    made.start()

    def change(spec: Any) -> None:
        spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "another:1"

    made.edit(change)
    made.start()
    assert schedulers(made) == ["other"] * 2 + [VOLCANO] * 2
    assert group(made)["spec"]["minMember"] == 2


def test_a_template_that_no_replica_has_needs_no_group() -> None:
    made = two_schedulers(2, 2, elasticPolicy={"minReplicas": 1, "maxReplicas": 9})
    made.start()
    assert not has_group(made)
    made.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=3))
    made.start()
    assert schedulers(made) == ["other", "other", VOLCANO]
    assert group(made)["spec"]["minMember"] == 1
