"""The policy about annotations that end ansible-operator, at a real API server."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from support import kinds
from support.builders import OWN_OPERATOR, caffe2job, mpijob, tfjob

ROOT = Path(__file__).resolve().parents[3]
POLICY = ROOT / "deploy" / "kustomize" / "components" / "ansible-operator" / "admission_policy.yaml"
PREFIX = "ansible.sdk.operatorframework.io/"
SECONDS = 60
Job = dict[str, Any]


class Policed:
    """Jobs at an API server that has the policy, for one namespace."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._objects = client.CustomObjectsApi(api)
        self._policies = client.AdmissionregistrationV1Api(api)
        self._namespace = namespace

    def apply_policy(self) -> None:
        """For this namespace alone, and wait until the API server obeys it."""
        policy, binding = yaml.safe_load_all(POLICY.read_text(encoding="utf-8"))
        policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = self._namespace
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        binding["spec"]["matchResources"] = {"namespaceSelector": selector}
        self._policies.create_validating_admission_policy(policy)
        self._policies.create_validating_admission_policy_binding(binding)
        bad = annotated(JOB, verbosity="8")
        bad["metadata"]["name"] = "not-created"
        deadline = time.monotonic() + SECONDS
        while not self.refusal(bad):
            assert time.monotonic() < deadline, "the API server does not obey the policy"
            time.sleep(0.1)

    def remove_policy(self) -> None:
        for delete in (
            self._policies.delete_validating_admission_policy_binding,
            self._policies.delete_validating_admission_policy,
        ):
            with contextlib.suppress(client.ApiException):  # the test has not applied it
                delete(self._namespace)

    def _place(self, job: Job) -> dict[str, str]:
        group, version = job["apiVersion"].split("/")
        kind = f"{job['kind'].lower()}s"
        return {"group": group, "version": version, "namespace": self._namespace, "plural": kind}

    def refusal(self, job: Job, dry_run: str | None = "All") -> str:
        """Why the API server refuses the creation, "" if it does not."""
        name = job["metadata"]["name"]
        annotations = job["metadata"].get("annotations") or {}
        body = {**job, "metadata": {"name": name, "annotations": annotations, "labels": OWN_OPERATOR}}
        options = {"dry_run": dry_run} if dry_run else {}
        try:
            self._objects.create_namespaced_custom_object(body=body, **self._place(job), **options)
        except client.ApiException as error:
            return str(error.body)
        return ""

    def patch(self, job: Job, metadata: Job) -> str:
        place = {**self._place(job), "name": job["metadata"]["name"]}
        try:
            self._objects.patch_namespaced_custom_object(body={"metadata": metadata}, **place)
        except client.ApiException as error:
            return str(error.body)
        return ""

    def delete(self, job: Job) -> None:
        place = {**self._place(job), "name": job["metadata"]["name"]}
        self._objects.delete_namespaced_custom_object(propagation_policy="Foreground", **place)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                self._objects.get_namespaced_custom_object(**place)
            except client.ApiException as error:
                assert error.status == 404, error
                return
            assert time.monotonic() < deadline, "the garbage collector cannot remove its finalizer"
            time.sleep(0.1)


def annotated(job: Job, **annotations: str) -> Job:
    found = copy.deepcopy(job)
    found["metadata"]["annotations"] = {f"{PREFIX}{name.replace('_', '-')}": text for name, text in annotations.items()}
    return found


JOBS = {
    "TFJob": tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1),
    "TFJob v1alpha1": tfjob("kubeflow.org/v1alpha1", master=1, worker=1),
    "TfJob": tfjob(master=1, worker=1),
    **{kind: job for kind, (_, job) in kinds.plain_jobs(1).items()},
    "Caffe2Job": caffe2job(2),
    "MPIJob": mpijob(),
}
JOB = JOBS["JAXJob"]
BAD = annotated(JOB, verbosity="9000000000000000000")


@pytest.fixture
def policed(api: client.ApiClient, crds: None, namespace: str) -> Iterator[Policed]:
    made = Policed(api, namespace)
    yield made
    made.remove_policy()


def test_what_it_refuses(policed: Policed) -> None:
    policed.apply_policy()
    for name, job in JOBS.items():
        assert policed.refusal(job) == "", name
        assert "verbosity'] must be a number from 0 to 7" in policed.refusal(annotated(job, verbosity="8")), name
    for text in ("0", "3", "7"):
        assert policed.refusal(annotated(JOB, verbosity=text)) == ""
    for text in ("-1", "07", "+1", "1e9", "70000", "7 ", "7\n"):
        assert "must be a number from 0 to 7" in policed.refusal(annotated(JOB, verbosity=text)), text
    for text in ("0", "30s", "1h30m", "1.5h", "500ms"):
        assert policed.refusal(annotated(JOB, reconcile_period=text)) == ""
    for text in ("30", "1d", "often", "-1s", "99999999h"):
        assert "must be a duration" in policed.refusal(annotated(JOB, reconcile_period=text)), text
    for text in ("3", "9", "10", "20", "999"):
        assert policed.refusal(annotated(JOB, max_runner_artifacts=text)) == ""
    for text in ("0", "1", "2", "-1", "03", "1000"):
        assert "must be a number from 3 to 999" in policed.refusal(annotated(JOB, max_runner_artifacts=text)), text


@pytest.mark.exclusive  # an operator that is deployed meanwhile brings the policy for all namespaces
def test_a_job_that_is_older_than_the_policy(policed: Policed) -> None:
    """It may be changed, except to another such value, and deleted."""
    assert policed.refusal(BAD, dry_run=None) == ""
    policed.apply_policy()
    assert policed.patch(BAD, {"labels": {"a": "b"}}) == ""
    assert "from 0 to 7" in policed.patch(BAD, {"annotations": {f"{PREFIX}verbosity": "1000000000"}})
    policed.delete(BAD)


def test_an_edit_cannot_bring_it(policed: Policed) -> None:
    assert policed.refusal(JOB, dry_run=None) == ""
    policed.apply_policy()
    assert "from 0 to 7" in policed.patch(JOB, {"annotations": {f"{PREFIX}verbosity": "1000000000"}})
    assert policed.patch(JOB, {"annotations": {f"{PREFIX}verbosity": "4"}}) == ""
