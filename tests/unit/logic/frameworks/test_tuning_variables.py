"""Which variables of each framework say who a process is, and which only tune: every variable must be in one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    build_cluster_spec,
    for_replica,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support import kinds
from support.builders import (
    ECHO_DECLARATION,
    caffe2job,
    echo_framework,
    mpijob,
    mpijob_v1,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)

IDENTITY: Mapping[str, set[str]] = {
    "mxnet": {
        *("MX_CONFIG", "DMLC_ROLE", "DMLC_WORKER_ID", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER"),
        *("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"),
        "DMLC_USE_KUBERNETES",  # how the processes were started; mx-operator and v1 always set it to 1
    },
    "tensorflow": {"TF_CONFIG"},
    "pytorch": {
        *("MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
        *("WORLD_SIZE", "RANK", "PET_NODE_RANK", "PET_NNODES"),
        *("PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "PET_RDZV_ID"),
        "PET_STANDALONE",  # that there are no others; PET_NNODES agrees with it
    },
    "paddle": {
        *("PADDLE_JOB_ID", "PADDLE_MASTER", "PADDLE_NNODES", "POD_IP_DUMMY"),
        *("PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM"),  # whether the pod is a server or a trainer
    },
    "xgboost": {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_ADDRS", "WORKER_PORT"},
    "mpi": {
        "K_MPI_JOB_ROLE",
        *("OMPI_MCA_orte_default_hostfile", "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"),
        "PRTE_MCA_prte_default_hostfile",
        # the form of the names in the hostfile
        *("OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"),
        # the program that reaches the hosts
        *("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"),
        *("I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC"),
    },
    "caffe2": {
        *("SHARD_ID", "NUM_SHARDS", "RUN_ID", "CAFFE2_CONFIG"),
        *("REDIS_HOST", "REDIS_PORT", "NFS_PATH"),  # where the workers meet; empty where they do not meet there
    },
}
TUNING: Mapping[str, set[str]] = {
    "pytorch": {"PYTHONUNBUFFERED", "PET_NPROC_PER_NODE", "PET_MAX_RESTARTS", "PET_RDZV_CONF"}
    | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE"},
    "mxnet": {"PS_HEARTBEAT_INTERVAL", "PS_HEARTBEAT_TIMEOUT"},
    "paddle": {"PYTHONUNBUFFERED", "PADDLE_RANK"},
    "xgboost": {"PYTHONUNBUFFERED"},
    "mpi": {
        *("OMPI_MCA_plm_rsh_args", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "HYDRA_LAUNCH_EXTRA_ARGS"),
        *("HYDRA_LAUNCHER_EXTRA_ARGS", "PRTE_MCA_plm_ssh_args"),
        *("OMPI_MCA_plm_rsh_no_tree_spawn", "PRTE_MCA_plm_ssh_no_tree_spawn"),
        *("OMPI_MCA_orte_set_default_slots", "PRTE_MCA_prte_set_default_slots", "I_MPI_PERHOST"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    },
}
ELASTIC = {
    "minReplicas": 1,
    "maxReplicas": 3,
    "rdzvId": "run",
    "rdzvConf": [{"key": "timeout", "value": "9"}],
    "maxRestarts": 2,
    "standalone": True,
}
JOBS: Mapping[str, Iterable[Any]] = {
    "mxnet": (
        mxjob().v1().servers(1).workers(2).resource(),
        mxjob().v1alpha1().servers(1).workers(2).resource(),
    ),
    "tensorflow": (tfjob(master=1, ps=1), tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2)),
    "pytorch": (
        pytorchjob(1, 2),
        pytorchjob(0, 2, elasticPolicy=ELASTIC),
        pytorchjob(0, 2, elasticPolicy={"minReplicas": 1}),
    ),
    "paddle": (paddlejob(0, 2), paddlejob(1, 2)),
    "xgboost": (xgboostjob(1, 2),),
    "mpi": (mpijob_v1(), *(mpijob(mpiImplementation=name) for name in ("OpenMPI", "Intel", "MPICH"))),
    "caffe2": (caffe2job(2),),
}
"""Together these jobs have every variable of the framework."""
COMPUTED = {name: framework for name, framework in kinds.FRAMEWORKS.items() if not kinds.declared_environment(name)}
"""The frameworks whose environment a hook computes; the others declare their variables."""


def variables(framework: Framework) -> Iterator[str]:
    for resource in JOBS[framework.name]:
        job = parse_job(resource, framework)
        cluster = build_cluster_spec(job, framework)
        for group, index in job.tasks():
            yield from framework.hooks.environment(for_replica(cluster, group.type, index))


@pytest.mark.parametrize("framework", COMPUTED.values(), ids=COMPUTED)
def test_every_variable_is_in_one_of_the_tables(framework: Framework) -> None:
    identity, tuning = IDENTITY[framework.name], TUNING.get(framework.name, set())
    assert not identity & tuning
    assert set(variables(framework)) == identity | tuning, "decide for a new variable, and enter it in a table"
    assert framework.tuning_variables == tuning, "tuning_variables of the role"


def test_the_tables_have_every_framework_that_computes_its_variables() -> None:
    assert set(IDENTITY) == set(JOBS) == set(COMPUTED)


@pytest.mark.parametrize("name", sorted(kinds.DECLARED.keys() - COMPUTED.keys()))
def test_what_only_tunes_is_among_the_declared_variables_and_some_other_is(name: str) -> None:
    assert set(kinds.FRAMEWORKS[name].tuning_variables) < kinds.declared_environment(name)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("ECHO_RANK", "tuning_variables must be a list of strings"),
        ([1], "tuning_variables must be a list of strings"),
        (["ECHO_SIZE"], "tuning_variables: 'ECHO_SIZE' is none of ECHO_RANK, ECHO_LEADER"),
    ],
)
def test_an_error_in_the_declaration_names_the_key(declared: object, message: str) -> None:
    with pytest.raises(InvalidFramework, match=message):
        echo_framework(tuning_variables=declared)


def test_a_filter_may_set_any_variable() -> None:
    declared = {**ECHO_DECLARATION, "hooks": {"environment": "example.com.echo"}, "tuning_variables": ["ANY"]}
    made = loader.framework(declared, {"environment": lambda _: {}})
    assert made.tuning_variables == {"ANY"}
