"""Helpers of the permission tests: the rules of the manifests, and jobs whose pods the test starts and ends itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from devtools.build.olm import csv, sources
from devtools.testbed.operator import OperatorProcess
from integration.engine.support import TIMEOUT, until
from integration.rights.recorder import Recorder, Right
from support.builders import OWN_OPERATOR
from support.operator_log import unescaped

from dljob_operator.engine.kube import KubeApi

ROOT = Path(__file__).resolve().parents[3]
BASE = ROOT / "deploy" / "kustomize" / "base"
OPTIONAL = BASE.parent / "components"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"
Resource = dict[str, Any]


def rules_of(kind: str) -> list[Resource]:
    """The rules of the Role that every installation has, or of the ClusterRole with those of all frameworks."""
    documents = [d for path in sorted(BASE.glob("*role.yaml")) for d in yaml.safe_load_all(path.read_text())]
    (role,) = (document for document in documents if document["kind"] == kind)
    if kind == "Role":
        return list(role["rules"])
    patches = [yaml.safe_load(path.read_text()) for path in sorted(OPTIONAL.glob("*-permissions/rules.yaml"))]
    return [*role["rules"], *(step["value"] for patch in patches for step in patch)]


def granted(rules: Sequence[Mapping[str, Any]]) -> set[Right]:
    return {
        Right(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]
    }


def less(rules: Sequence[Resource], missing: Right | None) -> list[Resource]:
    """The rules without that one right. It must be there: else nothing would be taken away."""
    if missing is None:
        return list(rules)
    assert missing in granted(rules), missing
    left = granted(rules) - {missing}
    return [{"apiGroups": [g], "resources": [r], "verbs": [v]} for g, r, v in sorted(left)]


def plural(kind: str) -> str:
    return kind.lower() + "s"


@dataclass
class Operator:
    """A running operator, and the API server as an administrator sees it."""

    kube: KubeApi
    process: OperatorProcess
    recorder: Recorder
    kubeconfig: Path
    log_file: Path
    own: str
    watched: str
    created: dict[str, str] = field(default_factory=dict)
    """By path of a job, the resourceVersion that its creation made."""

    @property
    def log(self) -> str:
        return unescaped(self.log_file.read_text())

    def create(self, manifest: Mapping[str, Any], name: str, *, is_schedulable: bool = False) -> str:
        """Create a job whose pods no node takes, unless it ``is_schedulable``; its path."""
        body = dict(manifest) if is_schedulable else unschedulable(manifest)
        body["metadata"] = {"name": name, "labels": OWN_OPERATOR}
        path = f"/apis/{body['apiVersion']}/namespaces/{self.watched}/{plural(body['kind'])}"
        self.created[f"{path}/{name}"] = self.kube.request("POST", path, body)["metadata"]["resourceVersion"]
        return f"{path}/{name}"

    def patch(self, path: str, body: Any) -> Resource:
        return self.kube.request("PATCH", path, body, content_type=MERGE)

    def get(self, path: str) -> Resource | None:
        try:
            return self.kube.get(path)
        except ApiError as error:
            assert error.status == 404, error
            return None

    def owned(self, kind: str, path: str) -> list[Resource]:
        """The job's objects of a kind, `pods` or `apps/v1/deployments`."""
        group, _, resource = kind.rpartition("/")
        base = f"/apis/{group}" if group else "/api/v1"
        uid = (self.get(path) or {"metadata": {"uid": "gone"}})["metadata"]["uid"]
        owners = {uid}
        if kind == "pods":  # of a launcher too, which a batch Job runs
            owners |= {one["metadata"]["uid"] for one in self.owned("batch/v1/jobs", path)}
        listed = self.kube.get(f"{base}/namespaces/{self.watched}/{resource}")["items"]
        return [o for o in listed if any(r["uid"] in owners for r in o["metadata"].get("ownerReferences", ()))]

    def succeed(self, path: str, type_: str = "") -> None:
        """Let every pod of the job, or of one type of its replicas, have ended well, as a kubelet would report it."""
        for pod in until(lambda: self.owned("pods", path), f"{path} has pods"):
            if type_ not in ("", pod["metadata"]["labels"]["dljob.operator/replica-type"]):
                continue
            ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
            states = [
                {"name": c["name"], "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
                for c in pod["spec"]["containers"]
            ]
            where = f"/api/v1/namespaces/{self.watched}/pods/{pod['metadata']['name']}/status"
            self.patch(where, {"status": {"phase": "Succeeded", "containerStatuses": states}})

    def become_ready(self, path: str) -> None:
        """Let every pod of the job run and be ready, as a kubelet would report it."""
        for pod in until(lambda: self.owned("pods", path), f"{path} has pods"):
            where = f"/api/v1/namespaces/{self.watched}/pods/{pod['metadata']['name']}/status"
            ready = {"type": "Ready", "status": "True"}
            self.patch(where, {"status": {"phase": "Running", "conditions": [ready]}})

    def status(self, path: str) -> Resource:
        return dict((self.get(path) or {}).get("status") or {})

    def status_since_creation(self, path: str, matches: Callable[[Resource], Any]) -> Resource:
        """The first status that matched, also where the next has replaced it already."""
        collection, _, name = path.rpartition("/")
        query = {"resourceVersion": self.created[path], "fieldSelector": f"metadata.name={name}"}
        with self.kube.watch(collection, query, quiet_for=TIMEOUT) as stream:
            statuses = (event["object"].get("status", {}) for event in stream)
            return next(status for status in statuses if matches(status))

    def events(self, path: str) -> list[Resource]:
        listed = self.kube.get(f"/api/v1/namespaces/{self.watched}/events")["items"]
        return [e for e in listed if e["involvedObject"]["name"] == path.rpartition("/")[2]]

    def until(self, what: Callable[[], Any], why: str) -> Any:
        try:
            return until(what, why)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log[-4000:]}") from None


def example(api_version: str, kind: str) -> Resource:
    """The bundle's job of that kind."""
    wanted = (api_version, kind)
    return dict(next(one for one in csv.examples(sources.read()) if (one["apiVersion"], one["kind"]) == wanted))


def mxjob_example() -> Resource:
    """The bundle's MXJob of kubeflow.org/v1."""
    return example("kubeflow.org/v1", "MXJob")


def mpijob_v1_example() -> Resource:
    """The MPIJob of kubeflow.org/v1, which the bundle has not."""
    return dict(yaml.safe_load((ROOT / "examples" / "mpi-v1-digits.yaml").read_text()))


def unschedulable(manifest: Mapping[str, Any]) -> Resource:
    """The same job, its pods for a node that there is not: they are made, and nothing runs."""
    made = copy.deepcopy(dict(manifest))
    for template in _templates(made["spec"]):
        template["spec"]["nodeSelector"] = {"rights-test": "nowhere"}
    if made["kind"] == "DLJob":  # its replicas may have an image instead of a template
        made["spec"]["schedulerName"] = "rights-test"
    return made


def _templates(value: Any) -> list[Resource]:
    if isinstance(value, list):
        return [found for one in value for found in _templates(one)]
    if not isinstance(value, dict):
        return []
    own = [value["template"]] if isinstance(value.get("template"), dict) else []
    return own + [found for key, one in value.items() if key != "template" for found in _templates(one)]
