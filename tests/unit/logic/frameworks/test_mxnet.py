"""Golden strings of the environment of MXNet's processes."""

from __future__ import annotations

import json

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mxnet import mxnet_environment
from support.builders import MXJob, environment_of, manifest_of, mxjob, seen_from

DMLC = {
    "DMLC_PS_ROOT_URI": "digits-scheduler-0",
    "DMLC_PS_ROOT_PORT": "9091",
    "DMLC_NUM_SERVER": "2",
    "DMLC_NUM_WORKER": "3",
    "DMLC_USE_KUBERNETES": "1",
    "PS_HEARTBEAT_INTERVAL": "1",
    "PS_HEARTBEAT_TIMEOUT": "2",
}
MX_CONFIG = (
    '{"cluster":{"scheduler":[{"url":"digits-scheduler-0","port":9091}],'
    '"server":[{"url":"digits-server-0","port":9091},{"url":"digits-server-1","port":9091}],'
    '"worker":[{"url":"digits-worker-0","port":9091},{"url":"digits-worker-1","port":9091},'
    '{"url":"digits-worker-2","port":9091}]},'
    '"labels":{"scheduler":"","server":"2080ti","worker":""},'
    '"task":{"type":"worker","index":1}}'
)


def v1() -> MXJob:
    job = mxjob("digits").v1().servers(2).workers(3)
    return job.template_metadata("Server", annotations={"tuner-server-key": "2080ti"})


def alpha(flavor: str) -> MXJob:
    return mxjob("digits").flavor(flavor).servers(2).workers(3)


@pytest.mark.parametrize(("type_", "role"), [("Scheduler", "scheduler"), ("Server", "server"), ("Worker", "worker")])
def test_v1_dmlc(type_: str, role: str) -> None:
    assert mxnet_environment(seen_from(v1().job(), type_)).items() >= {**DMLC, "DMLC_ROLE": role}.items()


def test_v1_worker() -> None:
    assert mxnet_environment(seen_from(v1().job(), "Worker", 1)) == {
        **DMLC,
        "DMLC_ROLE": "worker",
        "DMLC_WORKER_ID": "1",
        "MX_CONFIG": MX_CONFIG,
    }


@pytest.mark.parametrize("type_", ["Scheduler", "Server"])
def test_v1_only_workers_have_a_worker_id(type_: str) -> None:
    assert "DMLC_WORKER_ID" not in mxnet_environment(seen_from(v1().job(), type_))


def test_v1_named_port_is_in_both() -> None:
    job = v1().container("Scheduler", ports=[{"name": "mxjob-port", "containerPort": 7777}]).job()
    env = mxnet_environment(seen_from(job, "Worker"))
    assert env["DMLC_PS_ROOT_PORT"] == "7777"
    assert json.loads(env["MX_CONFIG"])["cluster"]["scheduler"] == [{"url": "digits-scheduler-0", "port": 7777}]


@pytest.mark.parametrize(("flavor", "port"), [("v1alpha1", "9091"), ("fioravanzo", "9000")])
def test_v1alpha1(flavor: str, port: str) -> None:
    job = alpha(flavor).option(RuntimeId="aycw").job()
    assert mxnet_environment(seen_from(job, "Server", 1)) == {
        "DMLC_ROLE": "server",
        "DMLC_PS_ROOT_URI": "scheduler-aycw-0.mxjob-aycw",
        "DMLC_PS_ROOT_PORT": port,
        "DMLC_NUM_SERVER": "2",
        "DMLC_NUM_WORKER": "3",
        "DMLC_USE_KUBERNETES": "1",
        "PS_HEARTBEAT_INTERVAL": "1",
        "PS_HEARTBEAT_TIMEOUT": "2",
    }


def test_mpba() -> None:
    env = mxnet_environment(seen_from(alpha("mpba").job(), "Worker", 2))
    assert (env["DMLC_ROLE"], env["DMLC_PS_ROOT_PORT"], env["DMLC_NUM_WORKER"]) == ("worker", "9000", "3")
    assert "MX_CONFIG" not in env


def test_only_the_schedulers_port_is_used() -> None:
    """The sample of mx-operator: port 9000 on the scheduler, 9091 on the others."""
    job = alpha("v1alpha1").entry("Scheduler", PsRootPort=9000).entry("Worker", PsRootPort=9091).job()
    assert mxnet_environment(seen_from(job, "Worker"))["DMLC_PS_ROOT_PORT"] == "9000"


def test_no_servers_and_no_workers() -> None:
    env = mxnet_environment(seen_from(mxjob().v1alpha1().job(), "Scheduler"))
    assert (env["DMLC_NUM_SERVER"], env["DMLC_NUM_WORKER"]) == ("0", "0")


def test_a_local_job_does_not_wait_for_a_scheduler() -> None:
    job = mxjob().v1alpha1().without("Scheduler").workers(1).option(jobMode="local").job()
    assert mxnet_environment(seen_from(job, "Worker")) == {}


def test_heartbeats_of_the_container_stay() -> None:
    job = v1().container("Worker", env=[{"name": "PS_HEARTBEAT_TIMEOUT", "value": "60"}]).job()
    env = environment_of(manifest_of(job, "worker"))
    assert (env["PS_HEARTBEAT_INTERVAL"], env["PS_HEARTBEAT_TIMEOUT"]) == ("1", "60")


def test_it_reaches_the_pod() -> None:
    pod = manifest_of(v1().job(), "worker", 1)
    assert environment_of(pod)["MX_CONFIG"] == MX_CONFIG
