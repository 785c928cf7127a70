"""Real programs that hang: a parameter server that died, a peer of a collective that is stopped, a stopped coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.live_jobs import Cluster, Job, kubectl
from support.reporting_program import REPORT, Start, reached_by_pods

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy-stall.yaml"
STEPS = 60
PID = "/tmp/pid"
SHELL = f'python -c "$PROGRAM" & echo $! > {PID}; wait $!'
"""The program is no process 1, so that a signal can stop or kill it."""
LOOP = f"""
for step in range(1, {STEPS} + 1):
    together()
    if RANK == 0 or EVERY:
        report(100 * step // {STEPS})
    print("step", step, flush=True)
    time.sleep(0.5)
"""
MXNET = f"""{REPORT}
import mxnet as mx
kv = mx.kv.create("dist_sync")
RANK, EVERY, out = int(os.environ["DMLC_WORKER_ID"]), False, mx.nd.zeros(10)
kv.init(0, out)

def together():
    kv.push(0, mx.nd.ones(10))
    kv.pull(0, out=out)
    out.wait_to_read()
{LOOP}
"""
TORCH = f"""{REPORT}
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
RANK, EVERY, value = dist.get_rank(), False, torch.ones(10)

def together():
    dist.all_reduce(value)
{LOOP}
"""
JAX = f"""{REPORT}
import jax
from jax.experimental import multihost_utils
RANK, EVERY = int(os.environ["PROCESS_ID"]), True
jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["NUM_PROCESSES"]), RANK)

def together():
    multihost_utils.process_allgather(jax.numpy.ones(10))
{LOOP}
"""

pytestmark = [pytest.mark.training, pytest.mark.long]


@pytest.fixture
def start(own: Cluster, tmp_path: Path) -> Start:
    return reached_by_pods(own, tmp_path)


def replicas(container: str, image: str, program: str, count: int = 1) -> dict[str, Any]:
    env = [{"name": "PROGRAM", "value": program}]
    main = {"name": container, "image": image, "command": ["sh", "-c", SHELL], "env": env}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [main]}
    return {"replicas": count, "restartPolicy": "OnFailure", "template": {"spec": spec}}


def job(kind: str, field: str, types: dict[str, Any], **run_policy: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "hangs"},
        "spec": {"runPolicy": run_policy, field: types},
    }


def signal(here: Cluster, made: Job, type_: str, name: str, index: int = 0) -> None:
    """Send the signal of that ``name`` to the program of a replica."""
    pod = made.pod(type_, index)["metadata"]["name"]
    kubectl(here, "exec", pod, "--", "sh", "-c", f"kill -{name} $(cat {PID})")


def stalled(status: dict[str, Any]) -> dict[str, Any]:
    return next((one for one in status.get("conditions") or () if one["type"] == "Stalled"), {})


def trains(made: Job) -> None:
    made.wait(lambda status: status.get("trainerStatus", {}).get("progressPercentage", 0) > 0, "its first report")


def test_a_job_whose_parameter_server_died_starts_again(own: Cluster, start: Start) -> None:
    """The kubelet starts the server again, and the workers wait for ever for what they had asked the old one."""
    image = "dljob/mxnet-digits:1"
    types = {
        "Scheduler": replicas("mxnet", image, MXNET),
        "Server": replicas("mxnet", image, MXNET),
        "Worker": replicas("mxnet", image, MXNET, 2),
    }
    policy = {"startSeconds": 60, "noProgressSeconds": 30, "action": "RestartJob"}
    manifest = job("MXJob", "mxReplicaSpecs", types, stallPolicy=policy, backoffLimit=2, cleanPodPolicy="None")
    manifest["spec"]["jobMode"] = "MXTrain"
    with start("operator"):
        made = own.create(manifest)
        trains(made)
        signal(own, made, "server", "KILL")
        made.wait(lambda status: status.get("attempt") == 1, "the restart of all replicas")
        event = own.wait_event(made.name, "Warning", "MXJobStalled")
        status = made.wait_end()
    assert status["state"] == "Succeeded", status.get("reason")
    assert "no program has reported progress" in event
    assert status["retries"] == {"job": 1}
    assert stalled(status)["status"] == "False"
    causes = {one["cause"]: one["count"] for one in status["usage"]["interruptions"]}
    assert causes["Stall"] == 1, causes


def test_a_collective_whose_peer_is_stopped_stalls_until_that_goes_on(own: Cluster, start: Start) -> None:
    image = "dljob/transformers-digits:1"
    types = {"Master": replicas("pytorch", image, TORCH), "Worker": replicas("pytorch", image, TORCH)}
    policy = {"noProgressSeconds": 30}
    with start("operator"):
        made = own.create(job("PyTorchJob", "pytorchReplicaSpecs", types, stallPolicy=policy))
        trains(made)
        signal(own, made, "worker", "STOP")
        status = made.wait(lambda status: stalled(status).get("status") == "True", "the stall")
        assert "more than 30 s" in status["reason"] and "last: master-0 at " in status["reason"], status["reason"]
        assert status["state"] == "Running"
        signal(own, made, "worker", "CONT")
        made.wait(lambda status: stalled(status).get("status") == "False", "the end of the stall")
        status = made.wait_end()
    assert (status["state"], status["reason"], "retries" in status) == ("Succeeded", "", False)


def test_a_job_whose_coordinator_is_stopped_fails(own: Cluster, start: Start) -> None:
    types = {"Worker": replicas("jax", "dljob/jax-digits:1", JAX, 2)}
    policy = {"noProgressSeconds": 30, "action": "FailJob"}
    with start("operator"):
        made = own.create(job("JAXJob", "jaxReplicaSpecs", types, stallPolicy=policy, progress="AllRanks"))
        trains(made)
        signal(own, made, "worker", "STOP")
        status = made.wait_end()
    assert (status["state"], status["failure"]["reason"]) == ("Failed", "Stalled")
    assert "worker-0 at " in status["reason"] and "worker-1 at " in status["reason"], status["reason"]


def test_the_example_fails(own: Cluster, start: Start) -> None:
    with start("operator"):
        status = own.create(yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))).wait_end()
    assert (status["state"], status["failure"]["reason"]) == ("Failed", "Stalled")
    assert "within 30 s" in status["reason"]
