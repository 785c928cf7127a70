"""Jobs of every family through their life cycles, with the real declarations of the roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.builders import (
    CAFFE2,
    JAX,
    MPI,
    MXNET,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    caffe2job,
    jaxjob,
    mpijob,
    mxjob,
    pytorchjob,
    tf_template,
    tfjob,
    xgboostjob,
)
from support.fake_api_server import Resource
from unit.perturbation.model import Action, Exit, Replica, Scenario, World

ALPHA_GPU = "alpha.kubernetes.io/nvidia-gpu"


# --- how containers exit


def exits(**codes: int | list[int]) -> Callable[[Replica, World], Exit | None]:
    """``exits(worker=0, master=[1, 0])``: the code of all replicas of a type, or by attempt. Others run on.

    Nothing exits before all replicas have run and all actions of the scenario are done.
    """

    def end(replica: Replica, world: World) -> Exit | None:
        if replica.type not in codes or not may_exit(world):
            return None
        code = codes[replica.type]
        return Exit(code if isinstance(code, int) else code[min(replica.attempt, len(code) - 1)])

    return end


def only(index: int, of: str, first: int, then: int = 0) -> Callable[[Replica, World], Exit | None]:
    """One replica exits with ``first`` at its first attempt; all others of the type, and its next attempt, with
    ``then``."""

    def end(replica: Replica, world: World) -> Exit | None:
        if replica.type != of or not may_exit(world):
            return None
        return Exit(first if replica.index == index and not replica.attempt else then)

    return end


def in_two_attempts(replica: Replica, world: World) -> Exit | None:
    """The worker of the first attempt fails, and all of the second succeed."""
    if not may_exit(world) or (replica.type != "worker" and not replica.attempt):
        return None
    return Exit(0 if replica.attempt else 137)


def last_after_workers(replica: Replica, world: World) -> Exit | None:
    """Worker 0 fails once; the chief or master succeeds when both workers have."""
    if replica.type == "worker":
        return only(0, "worker", 137)(replica, world)
    return Exit(0) if world.status.get("completed", {}).get("worker") == "0-1" else None


def first_worker(replica: Replica, world: World) -> Exit | None:
    """Worker 0 succeeds and the others run on: what the status says does not depend on how many ends it has seen."""
    return Exit(0) if replica.index == 0 and may_exit(world) else None


def may_exit(world: World) -> bool:
    return world.all_actions_done and world.status.get("phase") not in (None, "", "Creating")


# --- when users act


def is_running(world: World) -> bool:
    return world.status.get("phase") == "Running"


def is_suspended(world: World) -> bool:
    conditions = {x["type"]: x["status"] for x in world.status.get("conditions", ())}
    return conditions.get("Suspended") == "True" and not world.pods


def is_gone(world: World) -> bool:
    return world.job is None


def number_of_pods(count: int) -> Callable[[World], bool]:
    def check(world: World) -> bool:
        running = [pod for pod in world.pods.values() if pod["status"]["phase"] == "Running"]
        return is_running(world) and len(running) == count == len(world.pods)

    return check


def edited(change: Callable[[Any], object]) -> Callable[[World], None]:
    return lambda world: world.edit_job(change)


def to_two_workers(types_field: str, pods: int) -> list[Action]:
    """Of a job that runs; it has so many ``pods`` then."""
    return [
        Action(is_running, edited(lambda spec: spec[types_field]["Worker"].update(replicas=2))),
        Action(number_of_pods(pods), lambda world: None),
    ]


def suspend(value: bool) -> Callable[[World], None]:
    return edited(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=value))


def with_policy(job: Resource, types_field: str, policy: str) -> Resource:
    for entry in job["spec"][types_field].values():
        entry["restartPolicy"] = policy
    return job


def tfjob_v1(policy: str = "ExitCode", **counts: int) -> Resource:
    return with_policy(tfjob("kubeflow.org/v1", "tfReplicaSpecs", **counts), "tfReplicaSpecs", policy)


def with_run_policy(job: Resource, **fields: Any) -> Resource:
    job["spec"]["runPolicy"] = fields
    return job


def gpu_job() -> Resource:
    job = tfjob(master=1, ps=1)
    job["spec"]["replicaSpecs"][0]["template"] = tf_template(resources={"limits": {ALPHA_GPU: 1}})
    return job


def image(name: str) -> Callable[[Any], object]:
    def change(spec: Any) -> None:
        for entry in spec["replicaSpecs"]:
            entry["template"]["spec"]["containers"][0]["image"] = name

    return change


def workers(count: int) -> Callable[[Any], object]:
    return lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=count)


CLUSTER_INFO = {
    "config_map": "tf-job-operator-config",
    "config_maps": [
        {
            "metadata": {"name": "tf-job-operator-config", "namespace": "default"},
            "data": {
                "controller_config_file.yaml": "accelerators:\n"
                f"  {ALPHA_GPU}:\n"
                "    volumes:\n"
                "      - {name: libs, mountPath: /nvidia, hostPath: /usr/lib/nvidia}\n"
            },
        }
    ],
    "resources": ["nvidia.com/gpu"],
}


def scenarios() -> list[Scenario]:
    return [
        Scenario("tensorflow-map-success", TENSORFLOW, tfjob_v1(chief=1, ps=1, worker=1), exits(chief=0, worker=0)),
        Scenario(
            "tensorflow-map-restart-clean-all",
            TENSORFLOW,
            with_run_policy(tfjob_v1(chief=1, worker=2), cleanPodPolicy="All"),
            last_after_workers,
        ),
        Scenario("tensorflow-map-permanent", TENSORFLOW, tfjob_v1(chief=1, worker=1), exits(worker=1)),
        Scenario(
            "tensorflow-map-recreated",
            TENSORFLOW,
            tfjob_v1(chief=1, worker=1),
            exits(chief=0, worker=0),
            [Action(is_running, World.delete_job), Action(is_gone, World.create_job)],
        ),
        Scenario("tensorflow-list-success", TENSORFLOW, tfjob(master=1, ps=1, worker=1), exits(master=0, worker=0)),
        Scenario("tensorflow-list-gpu", TENSORFLOW, gpu_job(), exits(master=0), info=CLUSTER_INFO),
        Scenario(
            "tensorflow-tensorboard",
            TENSORFLOW,
            {**(job := tfjob(master=1)), "spec": {**job["spec"], "tensorboard": {"logDir": "/logs"}}},
            exits(master=0),
        ),
        Scenario(
            "mxnet-list-restart",
            MXNET,
            mxjob("digits").v1alpha1().workers(2).restart("Never").chief("Worker").resource(),
            only(0, "worker", 137),
        ),
        Scenario(
            "mxnet-list-edit",
            MXNET,
            mxjob("digits").v1alpha1().workers(1).restart("Never").resource(),
            exits(scheduler=0, worker=0),
            [Action(is_running, edited(image("train:2"))), Action(number_of_pods(2), lambda world: None)],
        ),
        Scenario(
            "mxnet-list-recreated",
            MXNET,
            mxjob("digits").v1alpha1().workers(1).resource(),
            exits(scheduler=0, worker=0),
            [Action(is_running, World.delete_job), Action(is_gone, World.create_job)],
        ),
        Scenario(
            "mxnet-map-restart-all",
            MXNET,
            mxjob("digits").v1().workers(1).restart("ExitCode").run_policy(restartScope="Job").resource(),
            in_two_attempts,
        ),
        Scenario(
            "mxnet-map-backoff",
            MXNET,
            mxjob("digits")
            .v1()
            .workers(1)
            .restart("ExitCode")
            .run_policy(backoffLimit=1, cleanPodPolicy="All")
            .resource(),
            exits(worker=137),
        ),
        Scenario(
            "mxnet-map-eviction",
            MXNET,
            mxjob("digits").v1().workers(2).restart("ExitCode").run_policy(cleanPodPolicy="Running").resource(),
            exits(scheduler=0, worker=0),
            [Action(is_running, lambda world: world.evict("worker", 1)), Action(number_of_pods(3), lambda world: None)],
        ),
        Scenario("caffe2-success", CAFFE2, caffe2job(2, runPolicy={"cleanPodPolicy": "None"}), exits(worker=0)),
        Scenario("caffe2-permanent", CAFFE2, caffe2job(2), only(1, "worker", 1)),
        Scenario(
            "caffe2-pod-deleted",
            CAFFE2,
            caffe2job(2),
            exits(worker=0),
            [
                Action(is_running, lambda world: world.delete_pod("worker", 0)),
                Action(number_of_pods(2), lambda world: None),
            ],
        ),
        Scenario(
            "pytorch-suspend",
            PYTORCH,
            pytorchjob(master=1, worker=1),
            exits(master=0, worker=0),
            [
                Action(is_running, suspend(True)),
                Action(is_suspended, suspend(False)),
                Action(number_of_pods(2), lambda world: None),
            ],
        ),
        Scenario(
            "pytorch-elastic-scale",
            PYTORCH,
            pytorchjob(worker=1, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}),
            first_worker,
            [
                Action(number_of_pods(1), edited(workers(3))),
                Action(number_of_pods(3), edited(workers(2))),
                Action(number_of_pods(2), lambda world: None),
            ],
        ),
        Scenario(
            "jax-scale",
            JAX,
            jaxjob(worker=1),
            exits(worker=0),
            to_two_workers("jaxReplicaSpecs", pods=2),
        ),
        Scenario(
            "xgboost-restart",
            XGBOOST,
            with_policy(xgboostjob(master=1, worker=2), "xgbReplicaSpecs", "ExitCode"),
            last_after_workers,
        ),
        Scenario("mpi-success", MPI, mpijob(2, runPolicy={"cleanPodPolicy": "All"}), exits(launcher=0)),
        Scenario(
            "mpi-scale-in-turn",
            MPI,
            mpijob(1, launcherCreationPolicy="WaitForWorkersReady"),
            exits(launcher=0),
            to_two_workers("mpiReplicaSpecs", pods=3),
        ),
        Scenario(
            "mpi-suspend",
            MPI,
            mpijob(1),
            exits(launcher=0),
            [
                Action(is_running, suspend(True)),
                Action(is_suspended, suspend(False)),
                Action(number_of_pods(2), lambda world: None),
            ],
        ),
        Scenario(
            "mpi-launcher-fails",
            MPI,
            with_policy(
                mpijob(1, runPolicy={"backoffLimit": 0, "cleanPodPolicy": "Running"}), "mpiReplicaSpecs", "Never"
            ),
            exits(launcher=1),
        ),
        Scenario(
            "pytorch-ttl",
            PYTORCH,
            with_run_policy(pytorchjob(master=1, worker=1), ttlSecondsAfterFinished=60),
            exits(master=0, worker=0),
        ),
    ]
