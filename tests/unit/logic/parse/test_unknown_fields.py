"""Fields of a job that nothing would read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    CAFFE2,
    MPI,
    MXNET,
    PYTORCH,
    TENSORFLOW,
    Resource,
    caffe2job,
    grouped,
    mpijob,
    mxjob,
    pytorchjob,
    tfjob,
)

Edit = Callable[[Any], object]


def error(job: Resource, framework: Framework) -> str:
    with pytest.raises(InvalidJob) as caught:
        parse_job(job, framework)
    return "; ".join(caught.value.problems)


@pytest.mark.parametrize(
    ("job", "framework", "edit", "said"),
    [
        (
            tfjob(master=1),
            TENSORFLOW,
            lambda s: s.update(tensorBoard={"logDir": "/l"}),
            "spec.tensorBoard .* write tensorboard",
        ),
        (
            tfjob(master=1),
            TENSORFLOW,
            lambda s: s.update(TENSORBOARD={"logDir": "/l"}),
            "spec.TENSORBOARD .* write tensorboard",
        ),
        (tfjob(master=1), TENSORFLOW, lambda s: s.update(runtimeId="a"), "spec.runtimeId .* write RuntimeId"),
        (
            tfjob(master=1),
            TENSORFLOW,
            lambda s: s["replicaSpecs"][0].update(TfReplicaType="WORKER"),
            r"spec.replicaSpecs\[0\].TfReplicaType .* write tfReplicaType",
        ),
        (
            tfjob(ps=1),
            TENSORFLOW,
            lambda s: s["replicaSpecs"][-1].update(isDefaultPS=True),
            r"isDefaultPS .* write IsDefaultPS",
        ),
        (
            mxjob().v1alpha1().resource(),
            MXNET,
            lambda s: s["replicaSpecs"][0].update(psRootPort=9000),
            "psRootPort .* write PsRootPort",
        ),
        (mxjob().mpba().resource(), MXNET, lambda s: s[0].update(Replicas=2), r"spec\[0\].Replicas .* write replicas"),
        (caffe2job(), CAFFE2, lambda s: s.update(BackendSpecs={}), "spec.BackendSpecs .* write backendSpecs"),
        (pytorchjob(1), PYTORCH, lambda s: s.update(RunPolicy={}), "spec.RunPolicy .* write runPolicy"),
    ],
)
def test_another_case(job: Resource, framework: Framework, edit: Edit, said: str) -> None:
    edit(job["spec"])
    with pytest.raises(InvalidJob, match=said):
        parse_job(job, framework)


def templates() -> list[tuple[Resource, Framework, Any, str]]:
    """A template in each layout, with its path."""
    found: list[tuple[Resource, Framework, Any, str]] = []
    for flavor, path in (
        ("v1", "spec.mxReplicaSpecs.Scheduler"),
        ("v1alpha1", "spec.replicaSpecs[0]"),
        ("fioravanzo", "spec.replicaSpecs[0]"),
        ("mpba", "spec[0]"),
    ):
        job = mxjob().flavor(flavor).resource()
        spec = job["spec"]
        entry = (
            spec[0]
            if isinstance(spec, list)
            else (spec.get("replicaSpecs") or [spec.get("mxReplicaSpecs", {}).get("Scheduler")])[0]
        )
        found.append((job, MXNET, entry["template"], path))
    single = caffe2job()
    found.append((single, CAFFE2, single["spec"]["replicaSpecs"]["template"], "spec.replicaSpecs"))
    mpi = mpijob()
    found.append((mpi, MPI, mpi["spec"]["mpiReplicaSpecs"]["Worker"]["template"], "spec.mpiReplicaSpecs.Worker"))
    groups = grouped(pytorchjob(1, 2), "Worker", big=(1, {}))
    group = groups["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"][0]
    found.append((groups, PYTORCH, group["template"], "spec.pytorchReplicaSpecs.Worker.groups[0]"))
    return found


@pytest.mark.parametrize(("job", "framework", "template", "path"), templates())
def test_an_unknown_key_in_the_metadata_of_a_template(
    job: Resource, framework: Framework, template: Any, path: str
) -> None:
    template["metadata"] = {"anotations": {"a": "b"}, "creationTimestamp": None}
    assert error(job, framework) == (
        f"{path}.template.metadata.anotations is unknown: a template has labels and annotations"
    )
    # an earlier release ignored it: the pods of a running job stay
    job["status"] = {"specHash": "1"}
    assert parse_job(job, framework).groups
