"""Valid TfJobs and TFJobs are accepted unchanged; invalid ones are rejected with the field and the fix."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.builders import kept, tf_template, tfjob
from support.upstream_manifests import TFJOBS, from_each_source, load

Job = dict[str, Any]
Edit = Callable[[Any], object]

LISTS = [("tensorflow.org/v1alpha1", "replicaSpecs"), ("tensorflow.org/v1alpha1", "replica_specs")] + [
    (f"kubeflow.org/{version}", field) for version in ("v1", "v1alpha1") for field in ("replicaSpecs", "replica_specs")
]
MAP = ("kubeflow.org/v1", "tfReplicaSpecs")
# tf-operator's sample with the defaults that tf-operator sets
COMPLETED = """
RuntimeId: 76no
replicaSpecs:
- IsDefaultPS: false
  replicas: 1
  template:
    metadata:
      creationTimestamp: null
    spec:
      containers:
      - image: gcr.io/tf-on-k8s-dogfood/tf_sample:dc944ff
        name: tensorflow
        resources: {}
      restartPolicy: OnFailure
  tfPort: 2222
  tfReplicaType: MASTER
- IsDefaultPS: true
  replicas: 2
  template:
    metadata:
      creationTimestamp: null
    spec:
      containers:
      - image: tensorflow/tensorflow:1.3.0
        name: tensorflow
        resources: {}
        volumeMounts:
        - mountPath: /ps-server
          name: ps-config-volume
      restartPolicy: OnFailure
  tfPort: 2222
  tfReplicaType: PS
tensorboard:
  logDir: /tmp/tensorflow
  serviceType: ""
  volumeMounts: null
  volumes: null
tfImage: tensorflow/tensorflow:1.3.0
"""


def fresh(job: Job) -> Job:
    """The job as a user submits it, without the fields that the API server sets."""
    made = copy.deepcopy(job)
    made["metadata"] = {"name": made["metadata"]["name"]}
    return made


@pytest.mark.parametrize(("api_version", "field"), LISTS)
def test_lists(api_version: str, field: str, submit: Callable[..., Job]) -> None:
    job = fresh(tfjob(api_version, field, master=1, worker=2, ps=2))
    assert submit(job)["spec"] == kept(job)


def test_map(submit: Callable[..., Job]) -> None:
    job = fresh(tfjob(*MAP, chief=1, worker=2, ps=1, evaluator=1))
    assert submit(job)["spec"] == kept(job)


@pytest.mark.parametrize("path", from_each_source(*TFJOBS))
def test_upstream_manifests(path: Path, submit: Callable[..., Job]) -> None:
    manifest = load(path)
    assert submit(manifest)["spec"] == kept(manifest)


def test_a_job_with_tf_operators_defaults(submit: Callable[..., Job]) -> None:
    submit(fresh(tfjob()) | {"spec": yaml.safe_load(COMPLETED)})


def entries(spec: Job) -> Any:
    return next(spec[f] for f in ("replicaSpecs", "replica_specs", "tfReplicaSpecs") if f in spec)


LIST_FAULTS: list[tuple[str, Edit, str]] = [
    ("no master", lambda s: entries(s).pop(0), "exactly one entry must have tfReplicaType MASTER"),
    ("two masters", lambda s: entries(s)[0].update(replicas=2), "replicas must be 1 where tfReplicaType is MASTER"),
    ("worker without template", lambda s: entries(s)[1].pop("template"), "template.spec.containers is missing"),
    ("worker without spec", lambda s: entries(s)[1].update(template={}), "template.spec.containers is missing"),
    (
        "worker without container",
        lambda s: entries(s)[1].update(template={"spec": {"containers": [{"name": "x", "image": "y"}]}}),
        "requires a container named tensorflow",
    ),
    ("unknown type", lambda s: entries(s)[1].update(tfReplicaType="CHIEF"), "supported values"),
    ("port", lambda s: entries(s)[0].update(tfPort=0), "tfPort"),
    ("no logDir", lambda s: s.update(tensorboard={"serviceType": "NodePort"}), "logDir"),
    ("bad service", lambda s: s.update(tensorboard={"logDir": "/x", "serviceType": "None"}), "serviceType"),
    ("both spellings", lambda s: s.update({"replicaSpecs": entries(s), "replica_specs": entries(s)}), "exactly one of"),
    (
        "no such chief",
        lambda s: s.update(terminationPolicy={"chief": {"replicaName": "WORKER", "replicaIndex": 7}}),
        "has no such replica",
    ),
]


@pytest.mark.parametrize(("edit", "message"), [pytest.param(e, t, id=n) for n, e, t in LIST_FAULTS])
@pytest.mark.parametrize(("api_version", "field"), [LISTS[0], LISTS[1], LISTS[2]])
def test_bad_lists(
    api_version: str, field: str, edit: Edit, message: str, validation_error: Callable[[Job], str]
) -> None:
    job = fresh(tfjob(api_version, field, master=1, worker=2, ps=2))
    edit(job["spec"])
    assert message in validation_error(job)


@pytest.mark.parametrize(("policy", "dynamic"), [("", False), ("AllWorkers", True)])
def test_policies_of_v1(policy: str, dynamic: bool, submit: Callable[..., Job]) -> None:
    job = fresh(tfjob(*MAP, worker=2, ps=1))
    job["spec"] |= {"successPolicy": policy, "enableDynamicWorker": dynamic}
    assert submit(job)["spec"] == kept(job)


MAP_FAULTS: list[tuple[str, Edit, str]] = [
    (
        "two chiefs",
        lambda s: entries(s).update(Master={"replicas": 1, "template": tf_template()}),
        "at most one Chief or Master",
    ),
    ("chief of two", lambda s: entries(s)["Chief"].update(replicas=2), "at most one Chief or Master"),
    ("no success target", lambda s: (entries(s).pop("Chief"), entries(s).pop("Worker")), "Chief, Master or Worker"),
    ("no template", lambda s: entries(s)["PS"].pop("template"), "template"),
    ("unknown policy", lambda s: s.update(successPolicy="Any"), "AllWorkers"),
    ("no boolean", lambda s: s.update(enableDynamicWorker="yes"), "boolean"),
    (
        "v1's policy of a list",
        lambda s: s.update(
            successPolicy="AllWorkers",
            replicaSpecs=[{"tfReplicaType": "MASTER", "template": s.pop("tfReplicaSpecs")["Chief"]["template"]}],
        ),
        "successPolicy is supported only with tfReplicaSpecs",
    ),
    (
        "elastic workers that restart together",
        lambda s: s.update(enableDynamicWorker=True, runPolicy={"restartScope": "Job"}),
        "remove restartScope, or enableDynamicWorker",
    ),
    ("unknown type", lambda s: entries(s).update(Boss={"template": tf_template()}), "unknown replica type"),
]


@pytest.mark.parametrize(("edit", "message"), [pytest.param(e, t, id=n) for n, e, t in MAP_FAULTS])
def test_bad_maps(edit: Edit, message: str, validation_error: Callable[[Job], str]) -> None:
    job = fresh(tfjob(*MAP, chief=1, worker=2, ps=1))
    edit(job["spec"])
    assert message in validation_error(job)


@pytest.mark.parametrize("template", [None, {}, {"spec": {"nodeSelector": {"a": "b"}}}])
def test_a_server_may_have_a_partial_template(template: Any, submit: Callable[..., Job]) -> None:
    job = fresh(tfjob(master=1, ps=2))
    if template is not None:
        job["spec"]["replicaSpecs"][1]["template"] = template
    submit(job)
