"""Jobs with rules for failures, limits and a start order, and jobs with objects that others change or have created."""

from __future__ import annotations

from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from support.builders import (
    CAFFE2,
    MPI,
    MXNET,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    MXJob,
    caffe2job,
    mpijob,
    mpijob_v1,
    mxjob,
    pytorchjob,
    tfjob,
    xgboostjob,
)
from support.fake_api_server import Resource
from unit.perturbation.model import PODS, Action, Exit, Replica, Scenario, World
from unit.perturbation.steps import (
    after_a_restart_of_the_job,
    at_once,
    edited,
    evicted_once,
    exits,
    first_worker,
    in_two_attempts,
    in_two_attempts_of_the_job,
    is_running,
    is_suspended,
    may_exit,
    number_of_pods,
    silent_at_first,
    suspend,
    twice_in_place,
    with_policy,
)

GANG = OperatorSettings(gang=gang_scheduler("volcano"))
NATIVE = OperatorSettings(gang=gang_scheduler("kubernetes"))
DISRUPTION = {"onPodConditions": [{"type": "DisruptionTarget"}]}
OFTEN = {"count": 1, "seconds": 86400}
STALL = {"startSeconds": 30, "noProgressSeconds": 60, "action": "RestartJob"}
IN_ORDER = {"startupPolicyOrder": "InOrder"}
METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def rule(action: str, *codes: int) -> Resource:
    """About exit codes, or without any about a disruption."""
    return {"action": action, **({"onExitCodes": {"operator": "In", "values": list(codes)}} if codes else DISRUPTION)}


def rules(*entries: Resource) -> Resource:
    return {"rules": list(entries)}


def mx(restart: str = "Never", **run_policy: Any) -> Resource:
    """A scheduler, a server and a worker."""
    made: MXJob = mxjob("digits").v1().servers(1).workers(1).restart(restart)
    return made.run_policy(**run_policy).resource()


def failure_rules() -> list[Scenario]:
    restart_job = rules(rule("RestartJob", 137), rule("RestartJob"))
    evicted = [
        Action(is_running, lambda world: world.evict("worker", 0)),
        Action(number_of_pods(3), lambda world: None),
    ]
    return [
        Scenario(
            "rules-restart-job",
            MXNET,
            mx(cleanPodPolicy="Running", podFailurePolicy=restart_job),
            in_two_attempts_of_the_job,
        ),
        Scenario(
            "rules-restart-job-over-the-limit",
            MXNET,
            mx("OnFailure", backoffLimit=1, cleanPodPolicy="All", podFailurePolicy=restart_job),
            exits(worker=137),
        ),
        Scenario(
            "rules-restart-job-evicted",
            MXNET,
            mx("OnFailure", podFailurePolicy=restart_job),
            exits(scheduler=0, worker=0),
            evicted,
        ),
        Scenario(
            "rules-count-eviction",
            MXNET,
            mx("OnFailure", backoffLimit=1, maxRestartsPerReplica=1, podFailurePolicy=rules(rule("Count"))),
            evicted_once,
        ),
        Scenario(
            "rules-whole-job-ignore",
            MXNET,
            mx("OnFailure", restartScope="Job", backoffLimit=0, podFailurePolicy=rules(rule("Ignore", 137))),
            in_two_attempts,
        ),
        Scenario(
            "rules-fail-job",
            TENSORFLOW,
            {
                **(
                    job := with_policy(
                        tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1), "tfReplicaSpecs", "OnFailure"
                    )
                ),
                "spec": {
                    **job["spec"],
                    "runPolicy": {"cleanPodPolicy": "Running", "podFailurePolicy": rules(rule("FailJob", 3))},
                },
            },
            exits(worker=3),
        ),
        Scenario(
            "rules-ignore-and-restart",
            CAFFE2,
            caffe2job(
                2,
                runPolicy={
                    "backoffLimit": 2,
                    "maxRestartsPerReplica": 1,
                    "podFailurePolicy": rules(rule("Ignore", 3), rule("Restart", 4)),
                },
            ),
            exits(worker=[3, 4, 0]),
        ),
        Scenario(
            "replica-limit",
            XGBOOST,
            with_policy(
                xgboostjob(master=1, worker=1, runPolicy={"maxRestartsPerReplica": 1, "cleanPodPolicy": "All"}),
                "xgbReplicaSpecs",
                "ExitCode",
            ),
            exits(worker=137),
        ),
        Scenario(
            "replica-limit-in-place",
            PYTORCH,
            pytorchjob(master=1, worker=1, runPolicy={"maxRestartsPerReplica": 1, "cleanPodPolicy": "Running"}),
            twice_in_place,
        ),
        Scenario(
            "restarts-within",
            XGBOOST,
            with_policy(
                xgboostjob(master=1, worker=1, runPolicy={"restartsWithin": OFTEN, "cleanPodPolicy": "All"}),
                "xgbReplicaSpecs",
                "ExitCode",
            ),
            exits(worker=137),
        ),
        Scenario(
            "restarts-within-in-place",
            PYTORCH,
            pytorchjob(master=1, worker=1, runPolicy={"restartsWithin": OFTEN, "cleanPodPolicy": "Running"}),
            twice_in_place,
        ),
        Scenario(
            "restarts-within-restart-job",
            MXNET,
            mx("ExitCode", restartsWithin={**OFTEN, "count": 0, "action": "RestartJob"}),
            in_two_attempts_of_the_job,
        ),
        Scenario(
            "stall-restart-job",
            MXNET,
            mx("ExitCode", backoffLimit=1, stallPolicy=STALL),
            after_a_restart_of_the_job,
            heard=silent_at_first,
        ),
        Scenario(
            "stall-whole-job",
            MXNET,
            mx("OnFailure", restartScope="Job", restartsWithin=OFTEN, stallPolicy=STALL),
            after_a_restart_of_the_job,
            heard=silent_at_first,
        ),
        Scenario(
            "stall-fail-job",
            XGBOOST,
            xgboostjob(master=1, worker=1, runPolicy={"stallPolicy": {**STALL, "action": "FailJob"}}),
            exits(),
            heard=silent_at_first,
        ),
        Scenario(
            "rules-mpi-restart-job",
            MPI,
            mpijob(1, runPolicy={"podFailurePolicy": rules(rule("RestartJob", 137)), "cleanPodPolicy": "All"}),
            lambda replica, world: (
                in_two_attempts_of_the_job(replica, world)
                if replica.type == "launcher" or not world.status.get("attempt")
                else None
            ),
        ),
    ]


def start_orders() -> list[Scenario]:
    restart_job = rules(rule("RestartJob", 137))
    return [
        Scenario("in-order", MXNET, mx(startupPolicy=IN_ORDER), exits(scheduler=0, worker=0)),
        Scenario(
            "in-order-restart-job",
            MXNET,
            mx(startupPolicy=IN_ORDER, podFailurePolicy=restart_job),
            in_two_attempts_of_the_job,
        ),
        Scenario(
            "in-order-whole-job",
            MXNET,
            mx("ExitCode", startupPolicy=IN_ORDER, restartScope="Job"),
            in_two_attempts,
        ),
        Scenario(
            "after-completion",
            PYTORCH,
            pytorchjob(
                master=1,
                worker=1,
                runPolicy={
                    "startupPolicy": {"dependsOn": {"Master": [{"replicaType": "Worker", "condition": "Complete"}]}}
                },
            ),
            at_once,
        ),
    ]


def other_objects() -> list[Scenario]:
    elastic = {"minReplicas": 1, "maxReplicas": 3, "metrics": [METRIC]}
    return [
        Scenario(
            "autoscaler",
            PYTORCH,
            pytorchjob(worker=1, elasticPolicy=elastic),
            first_worker,
            [
                Action(is_running, _scale(2)),
                Action(number_of_pods(2), suspend(True)),
                Action(is_suspended, suspend(False)),
                Action(number_of_pods(2), lambda world: None),
            ],
        ),
        Scenario(
            "gang-scale",
            PYTORCH,
            pytorchjob(worker=1, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}),
            first_worker,
            [
                Action(is_running, _scale(2)),
                Action(number_of_pods(2), suspend(True)),
                Action(is_suspended, suspend(False)),
                Action(number_of_pods(2), lambda world: None),
            ],
            settings=GANG,
        ),
        Scenario(
            "gang-in-turn",
            MPI,
            mpijob(2, launcherCreationPolicy="WaitForWorkersReady", runPolicy={"cleanPodPolicy": "All"}),
            exits(launcher=0),
            settings=GANG,
        ),
        Scenario("gang-launcher", MPI, mpijob_v1(2), exits(launcher=0), settings=GANG),
        Scenario(
            "native-gang-beside-a-finished-replica",
            PYTORCH,
            with_policy(pytorchjob(master=1, worker=2), "pytorchReplicaSpecs", "OnFailure"),
            _first_worker_at_once,
            [
                Action(lambda world: bool(world.status.get("completed")), lambda world: world.evict("worker", 1)),
                Action(_number_of_running(2), lambda world: None),
            ],
            settings=NATIVE,
        ),
        Scenario(
            "native-gang-suspended",
            PYTORCH,
            pytorchjob(worker=1, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}),
            first_worker,
            [
                Action(is_running, _scale(2)),
                Action(number_of_pods(2), suspend(True)),
                Action(is_suspended, suspend(False)),
                Action(number_of_pods(2), lambda world: None),
            ],
            settings=NATIVE,
        ),
        Scenario(
            "native-gang-in-turn",
            MPI,
            mpijob(2, launcherCreationPolicy="WaitForWorkersReady", runPolicy={"cleanPodPolicy": "All"}),
            exits(launcher=0),
            settings=NATIVE,
        ),
        Scenario(
            "adopted",
            PYTORCH,
            pytorchjob(master=1, worker=1, runPolicy={"cleanPodPolicy": "All"}),
            exits(master=0, worker=0),
            inherit=training_operators_objects,
        ),
    ]


def _first_worker_at_once(replica: Replica, world: World) -> Exit | None:
    """Worker 0 succeeds as soon as the job runs, and the others in the end."""
    if (replica.type, replica.index) == ("worker", 0):
        return Exit(0) if is_running(world) else None
    return Exit(0) if may_exit(world) else None


def _number_of_running(count: int) -> Any:
    return lambda world: [pod["status"]["phase"] for pod in world.pods.values()].count("Running") == count


def _scale(count: int) -> Any:
    return edited(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=count))


def training_operators_objects(world: World) -> None:
    """The pods and Services that training-operator has created for a PyTorchJob."""
    job = world.job
    assert job is not None
    metadata = job["metadata"]
    owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    for type_, entry in job["spec"]["pytorchReplicaSpecs"].items():
        name = f"{metadata['name']}-{type_.lower()}-0"
        labels = {
            "training.kubeflow.org/job-name": metadata["name"],
            "training.kubeflow.org/replica-type": type_.lower(),
            "training.kubeflow.org/replica-index": "0",
        }
        made = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "labels": labels,
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            }
        }
        pod = {**entry["template"]["spec"], "restartPolicy": "OnFailure"}
        world.server.request("POST", f"/api/v1/namespaces/default/{PODS[1]}", {**made, "kind": "Pod", "spec": pod})
        service = {"clusterIP": "None", "selector": labels, "ports": [{"name": "pytorchjob-port", "port": 23456}]}
        world.server.request(
            "POST", "/api/v1/namespaces/default/services", {**made, "kind": "Service", "spec": service}
        )
