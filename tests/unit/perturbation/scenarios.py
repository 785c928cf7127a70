"""Jobs of every family through their life cycles, with the real declarations of the roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.builders import (
    CAFFE2,
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    caffe2job,
    grouped,
    jaxjob,
    mpijob,
    mpijob_v1,
    mxjob,
    paddlejob,
    pytorchjob,
    tf_template,
    tfjob,
    xgboostjob,
)
from support.fake_api_server import Resource
from unit.perturbation.model import Action, Scenario, World
from unit.perturbation.policy_scenarios import failure_rules, other_objects, start_orders
from unit.perturbation.steps import (
    edited,
    exits,
    first_worker,
    in_two_attempts,
    is_gone,
    is_running,
    is_suspended,
    last_after_workers,
    number_of_pods,
    only,
    suspend,
    to_two_workers,
    with_policy,
    with_run_policy,
)
from unit.perturbation.suspension_scenarios import suspensions

ALPHA_GPU = "alpha.kubernetes.io/nvidia-gpu"


def tfjob_v1(policy: str = "ExitCode", **counts: int) -> Resource:
    return with_policy(tfjob("kubeflow.org/v1", "tfReplicaSpecs", **counts), "tfReplicaSpecs", policy)


def gpu_job() -> Resource:
    job = tfjob(master=1, ps=1)
    job["spec"]["replicaSpecs"][0]["template"] = tf_template(resources={"limits": {ALPHA_GPU: 1}})
    return job


def image(name: str) -> Callable[[Any], object]:
    def change(spec: Any) -> None:
        for entry in spec["replicaSpecs"]:
            entry["template"]["spec"]["containers"][0]["image"] = name

    return change


def image_of_the_group(name: str) -> Callable[[Any], None]:
    def change(spec: Any) -> None:
        (group,) = spec["paddleReplicaSpecs"]["Worker"]["groups"]
        group["template"]["spec"]["containers"][0]["image"] = name

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
    return [*_life_cycles(), *failure_rules(), *start_orders(), *other_objects(), *suspensions()]


def _life_cycles() -> list[Scenario]:
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
            "mpi-v1-scale",  # the Role, which nothing watches, follows the workers
            MPI,
            with_policy(mpijob_v1(1, runPolicy={"cleanPodPolicy": "All"}), "mpiReplicaSpecs", "ExitCode"),
            exits(launcher=0),
            to_two_workers("mpiReplicaSpecs", pods=3),
        ),
        Scenario("mpi-v1-worker-fails", MPI, mpijob_v1(1), exits(worker=1)),
        Scenario(
            "paddle-groups-edit",  # replaces the pod of the group only
            PADDLE,
            grouped(paddlejob(worker=3), "Worker", large=(1, {"image": "large:1"})),
            exits(worker=0),
            [
                Action(is_running, edited(image_of_the_group("large:2"))),
                Action(number_of_pods(3), lambda world: None),
            ],
        ),
        Scenario(
            "pytorch-ttl",
            PYTORCH,
            with_run_policy(pytorchjob(master=1, worker=1), ttlSecondsAfterFinished=60),
            exits(master=0, worker=0),
        ),
    ]
