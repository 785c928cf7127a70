"""A small valid MXJob per API flavor, and the fixtures of the schema tests."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from kubernetes import client
from support.builders import OWN_OPERATOR

Job = dict[str, Any]
Submit = Callable[..., Job]

_TEMPLATE: Job = {"spec": {"containers": [{"name": "mxnet", "image": "example/train:1"}]}}
_JOBS = """
fioravanzo: &list
  apiVersion: fioravanzo.org/v1alpha1
  kind: MXJob
  metadata: {name: job}
  spec:
    replicaSpecs:
      - {mxReplicaType: SCHEDULER, replicas: 1}
      - {mxReplicaType: SERVER, replicas: 2}
      - {mxReplicaType: WORKER, replicas: 2}
kubeflow-list:
  <<: *list
  apiVersion: kubeflow.org/v1alpha1
mpba:
  apiVersion: mpba.fbk.eu/v1
  kind: MXJob
  metadata: {name: job}
  spec:
    - {replicaType: SCHEDULER, replicas: 1}
    - {replicaType: SERVER, replicas: 2}
    - {replicaType: WORKER, replicas: 2}
kubeflow-map:
  apiVersion: kubeflow.org/v1
  kind: MXJob
  metadata: {name: job}
  spec:
    jobMode: MXTrain
    mxReplicaSpecs:
      Scheduler: {replicas: 1, restartPolicy: Never}
      Server: {replicas: 2, restartPolicy: Never}
      Worker: {replicas: 2, restartPolicy: Never}
"""


def _entries(spec: Any) -> list[Job]:
    if isinstance(spec, list):
        return spec
    return spec["replicaSpecs"] if "replicaSpecs" in spec else list(spec["mxReplicaSpecs"].values())


@pytest.fixture
def jobs() -> dict[str, Job]:
    """API flavor to a job in it: a scheduler, two servers and two workers."""
    # copy each job separately: one deepcopy of the mapping would keep the parts shared by YAML aliases
    found = {name: copy.deepcopy(job) for name, job in yaml.safe_load(_JOBS).items()}
    for job in found.values():
        for entry in _entries(job["spec"]):
            entry["template"] = copy.deepcopy(_TEMPLATE)
    return found


@pytest.fixture(scope="session")
def submit(api: client.ApiClient, crds: None, empty_namespace: str) -> Submit:
    """``submit(job)`` creates it as a strict dry run, as kubectl validates; with ``namespace`` without dry run."""
    objects = client.CustomObjectsApi(api)

    def create(job: Job, *, namespace: str = "") -> Job:
        group, version = job["apiVersion"].split("/")
        if namespace:  # no operator may reconcile it
            job = {**job, "metadata": {**job["metadata"], "labels": OWN_OPERATOR}}
        options: dict[str, Any] = {"field_validation": "Strict", **({} if namespace else {"dry_run": "All"})}
        created: Any = objects.create_namespaced_custom_object(
            group, version, namespace or empty_namespace, f"{job['kind'].lower()}s", job, **options
        )
        return created

    return create


@pytest.fixture(scope="session")
def validation_error(submit: Submit) -> Callable[[Job], str]:
    """``validation_error(job)``: the API server's error for the job; "" if it is valid."""

    def validate(job: Job) -> str:
        try:
            submit(job)
        except client.ApiException as error:
            assert error.status in (400, 422), error
            return str(error.body)
        return ""

    return validate
