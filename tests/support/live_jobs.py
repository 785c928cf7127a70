"""Jobs on a real cluster, and functions that wait for their state with watches."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import urllib3
import yaml
from devtools.checks.suite import session
from kubernetes import client, config, watch

from support import polling

Resource = dict[str, Any]

SHELL_IMAGE = "dljob/shell:1"
EXEC_TIMEOUT = 30.0
EXEC_ATTEMPTS = 3
"""Of a command in a container: on a busy machine a kubelet has left one without an answer."""


def for_own_operator(manifest: Mapping[str, Any]) -> Resource:
    """The same job, labelled so that the shared operator ignores it: its test starts an operator, or needs none."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), session.LABEL: "own"}}}


class Timeout(AssertionError):
    """The expected state was not reached in time; the message shows the actual state."""


TIMEOUT = 400
"""Timeout in seconds for expected states: it stops a hanging test and is no measure of speed."""


def until(wanted: Callable[[], bool], timeout: float = 120.0) -> None:
    """Poll until ``wanted()`` is true, for conditions that cannot be watched, such as an operator's log."""
    polling.until(wanted, timeout=timeout, pause=0.1)  # asking a cluster costs more than waiting


BEGUN = "BEGUN"
"""The type of the event with which `watched` starts and restarts: its object is the list."""


def watched(call: Callable[..., Any], *where: str, timeout: float, **selector: str) -> Iterator[Resource]:
    """The list and every event after it, for ``timeout`` seconds.

    The API server may close a watch at any time, for example when the CRD of the kind changes; then this lists and
    watches again.
    """
    deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        try:
            with call(*where, **selector, _preload_content=False) as answer:
                listed = json.loads(answer.data)
            yield {"type": BEGUN, "raw_object": listed}
            version = listed["metadata"]["resourceVersion"]
            for event in watch.Watch().stream(
                call, *where, **selector, resource_version=version, timeout_seconds=max(1, int(left))
            ):
                yield dict(event)
        except (client.ApiException, urllib3.exceptions.HTTPError) as error:
            if getattr(error, "status", None) not in AGAIN:
                raise
            time.sleep(0.2)


AGAIN = (None, 404, 410, 429, 500, 503)
"""HTTP statuses of a watch that the test did not cause: a missing CRD or server, or an expired resource version."""


def kubectl(here: Cluster, *arguments: str, timeout: float | None = None) -> str:
    """The output of kubectl in the namespace ``here``; asserts that it succeeds."""
    command = [str(here.kubeconfig.parent / "bin" / "kubectl"), "--kubeconfig", str(here.kubeconfig)]
    command += ["-n", here.namespace, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Cluster:
    """A namespace of a cluster, through the API; with ``own_operator`` the shared operator ignores its jobs."""

    def __init__(self, kubeconfig: Path, namespace: str, *, own_operator: bool = False) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._own_operator = own_operator
        api = config.new_client_from_config(str(kubeconfig))
        self.core = client.CoreV1Api(api)
        self.custom = client.CustomObjectsApi(api)
        self._json = api

    # --- jobs

    def create(self, manifest: Mapping[str, Any]) -> Job:
        if self._own_operator:
            manifest = for_own_operator(manifest)
        group, _, version = manifest["apiVersion"].partition("/")
        plural = manifest["kind"].lower() + "s"
        created = self.custom.create_namespaced_custom_object(group, version, self.namespace, plural, dict(manifest))
        return Job(self, (group, version, self.namespace, plural), created)

    # --- owned objects

    def pods(self, **labels: str) -> list[Resource]:
        selector = ",".join(f"{k.replace('__', '/').replace('_', '-')}={v}" for k, v in labels.items())
        found = self.core.list_namespaced_pod(self.namespace, label_selector=selector)
        return [self._json.sanitize_for_serialization(p) for p in found.items]

    def owned_pods(self, uid: str) -> list[Resource]:
        found = self.core.list_namespaced_pod(self.namespace, label_selector=f"dljob.operator/job-uid={uid}")
        return [self._json.sanitize_for_serialization(p) for p in found.items]

    def services(self, uid: str) -> list[Resource]:
        found = self.core.list_namespaced_service(self.namespace, label_selector=f"dljob.operator/job-uid={uid}")
        return [self._json.sanitize_for_serialization(s) for s in found.items]

    def wait_pods(
        self, uid: str, wanted: Callable[[list[Resource]], bool], what: str, timeout: int = TIMEOUT
    ) -> list[Resource]:
        """Wait until ``wanted`` is true for the job's pods; checked after every event of one of them."""
        pods: dict[str, Resource] = {}
        selector = f"dljob.operator/job-uid={uid}"
        for event in watched(self.core.list_namespaced_pod, self.namespace, timeout=timeout, label_selector=selector):
            pod = event["raw_object"]
            if event["type"] == BEGUN:
                pods = {item["metadata"]["name"]: item for item in pod["items"]}
            elif event["type"] == "DELETED":
                pods.pop(pod["metadata"]["name"], None)
            else:
                pods[pod["metadata"]["name"]] = pod
            if wanted(list(pods.values())):
                return list(pods.values())
        raise Timeout(
            f"{what}: not after {timeout} s; the pods: {[(n, p['status'].get('phase')) for n, p in pods.items()]}"
        )

    def log(self, pod: str, container: str = "mxnet") -> str:
        return str(self.core.read_namespaced_pod_log(pod, self.namespace, container=container))

    def wait_log(self, pod: str, text: str, container: str = "mxnet") -> str:
        """The container's log, followed until it contains ``text``."""
        seen = ""
        answer = self.core.read_namespaced_pod_log(
            pod, self.namespace, container=container, follow=True, _preload_content=False, _request_timeout=TIMEOUT
        )
        with answer:
            for piece in answer.stream():
                seen += piece.decode()
                if text in seen:
                    return seen
        raise AssertionError(f"no {text!r} in the log: {seen}")

    def run(self, pod: str, *command: str, container: str) -> None:
        """Run a command in a container; asserts that it prints nothing. One that gets no answer is run again."""
        for left in reversed(range(EXEC_ATTEMPTS)):
            try:
                # not with the Python client: its handshake has no time limit
                said = kubectl(self, "exec", pod, "-c", container, "--", *command, timeout=EXEC_TIMEOUT)
            except subprocess.TimeoutExpired:
                if not left:
                    raise
            else:
                assert not said, said
                return

    def release(self, pod: str, container: str) -> None:
        """Wait until the container, which runs ``UNTIL_RELEASED``, has started, and make it exit with 0.

        The container may exit before the command in it that released it, which then fails.
        """
        state = self._wait_container(pod, container, ("running", "terminated"), TIMEOUT)
        if not state or "waiting" in state:
            raise Timeout(f"{pod}: the container {container} has not started after {TIMEOUT} s: {state}")
        try:
            self.run(pod, "touch", RELEASE, container=container)
        except AssertionError:
            ended = self._wait_container(pod, container, ("terminated",), EXEC_TIMEOUT).get("terminated")
            if not ended or ended["exitCode"] != 0:
                raise

    def _wait_container(self, pod: str, container: str, wanted: tuple[str, ...], timeout: float) -> Resource:
        """Wait until the container's state is one of ``wanted``; returns its last state in any case, {} if it has none."""
        state: Resource = {}
        selector = f"metadata.name={pod}"
        for event in watched(self.core.list_namespaced_pod, self.namespace, timeout=timeout, field_selector=selector):
            for found in event["raw_object"]["items"] if event["type"] == BEGUN else [event["raw_object"]]:
                for status in found["status"].get("containerStatuses") or ():
                    if status["name"] == container:
                        state = dict(status["state"])
            if any(one in state for one in wanted):
                break
        return state

    def events(self, name: str) -> list[tuple[str, str, str]]:
        """(type, reason, message) of the Events on the object of that name."""
        found = self.core.list_namespaced_event(self.namespace, field_selector=f"involvedObject.name={name}")
        return [(e.type, e.reason, e.message) for e in found.items]

    def wait_event(self, name: str, type_: str, reason: str, text: str = "", timeout: int = TIMEOUT) -> str:
        """Wait for an Event on the object with ``text`` in its message; returns the message."""
        seen = []
        selector = f"involvedObject.name={name}"
        for event in watched(self.core.list_namespaced_event, self.namespace, timeout=timeout, field_selector=selector):
            for found in event["raw_object"]["items"] if event["type"] == BEGUN else [event["raw_object"]]:
                seen.append((found["type"], found["reason"], found["message"]))
                if seen[-1][:2] == (type_, reason) and text in found["message"]:
                    return str(found["message"])
        raise Timeout(f"{type_} {reason} with {text!r}: not after {timeout} s; the Events: {seen}")


def start_server(here: Cluster, deployment: Resource, service: Resource, timeout: int = 120) -> str:
    """Create a Deployment and its Service, such as those of a server in an example; the Service's name, once it is ready."""
    apps = client.AppsV1Api(here.core.api_client)
    created = apps.create_namespaced_deployment(here.namespace, deployment)
    here.core.create_namespaced_service(here.namespace, service)
    selector = f"metadata.name={created.metadata.name}"
    for event in watched(apps.list_namespaced_deployment, here.namespace, timeout=timeout, field_selector=selector):
        for found in event["raw_object"]["items"] if event["type"] == BEGUN else [event["raw_object"]]:
            if found["status"].get("readyReplicas"):
                return str(service["metadata"]["name"])
    raise Timeout(f"{created.metadata.name} is not ready after {timeout} s")


class Job:
    """A created job."""

    def __init__(self, cluster: Cluster, where: tuple[str, str, str, str], created: Resource) -> None:
        self.cluster = cluster
        self.where = where
        self.name: str = created["metadata"]["name"]
        self.uid: str = created["metadata"]["uid"]

    def get(self) -> Resource:
        return dict(self.cluster.custom.get_namespaced_custom_object(*self.where, self.name))

    @property
    def status(self) -> Resource:
        return dict(self.get().get("status") or {})

    def patch(self, body: Any) -> Resource:
        return dict(self.cluster.custom.patch_namespaced_custom_object(*self.where, self.name, body))

    def delete(self) -> None:
        self.cluster.custom.delete_namespaced_custom_object(*self.where, self.name)

    def pods(self) -> list[Resource]:
        return self.cluster.owned_pods(self.uid)

    def pod(self, type_: str, index: int = 0) -> Resource:
        """The replica's only pod."""
        found = [
            p
            for p in self.pods()
            if (
                p["metadata"]["labels"]["dljob.operator/replica-type"],
                p["metadata"]["labels"]["dljob.operator/replica-index"],
            )
            == (type_, str(index))
        ]
        assert len(found) == 1, f"{type_}-{index}: {[p['metadata']['name'] for p in found]}"
        return found[0]

    def release(self, type_: str, index: int = 0) -> None:
        """Make a replica that runs ``UNTIL_RELEASED`` exit with 0."""
        pod = self.pod(type_, index)
        (container, *_) = pod["spec"]["containers"]
        self.cluster.release(pod["metadata"]["name"], container["name"])

    def wait(self, wanted: Callable[[Resource], bool], what: str, timeout: int = TIMEOUT) -> Resource:
        """Wait until ``wanted`` is true for the status; returns the status."""
        seen: Resource = {}
        selector = f"metadata.name={self.name}"
        jobs = self.cluster.custom.list_namespaced_custom_object
        for event in watched(jobs, *self.where, timeout=timeout, field_selector=selector):
            for found in event["raw_object"]["items"] if event["type"] == BEGUN else [event["raw_object"]]:
                seen = found.get("status") or {}
                if event["type"] != "DELETED" and wanted(seen):
                    return seen
        pods = [(p["metadata"]["name"], p["status"]) for p in self.pods()]
        raise Timeout(
            f"{what}: not after {timeout} s; the status: {yaml.safe_dump(seen)}\nthe pods: {yaml.safe_dump(pods)}"
        )

    def wait_deleted(self, timeout: int = TIMEOUT) -> None:
        """Wait until the API server no longer has the job."""
        jobs, selector = self.cluster.custom.list_namespaced_custom_object, f"metadata.name={self.name}"
        for event in watched(jobs, *self.where, timeout=timeout, field_selector=selector):
            if event["type"] == "DELETED" or (event["type"] == BEGUN and not event["raw_object"]["items"]):
                return
        raise Timeout(f"{self.name} is still there after {timeout} s")

    def wait_end(self, timeout: int = TIMEOUT) -> Resource:
        """Wait until the job has finished and is cleaned up; returns the status."""
        return self.wait(
            lambda s: s.get("phase") in ("Done", "Failed") and bool(s.get("completionTime")), "its end", timeout
        )

    def wait_running(self, timeout: int = TIMEOUT) -> Resource:
        return self.wait(lambda s: s.get("phase") == "Running", "phase Running", timeout)


def shell_template(script: str, restart_policy: str | None = "OnFailure", container: str = "mxnet") -> Resource:
    """A pod template whose only container runs ``script`` in a shell."""
    spec: Resource = {
        "containers": [
            {
                "name": container,
                "image": SHELL_IMAGE,
                "command": ["sh", "-c", script],
                "resources": {"requests": {"cpu": "10m"}},
            }
        ],
        "terminationGracePeriodSeconds": 1,
    }
    if restart_policy:
        spec["restartPolicy"] = restart_policy
    return {"spec": spec}


UNTIL_ENDED = "trap 'exit 0' TERM; sleep 86400 & wait"
RELEASE = "/tmp/released"
UNTIL_RELEASED = f"trap 'exit 0' TERM; until [ -e {RELEASE} ]; do sleep 0.1; done"
"""For a replica that exits when the test calls ``Job.release``, after checking the running job."""


def v1alpha1_job(name: str, group: str = "kubeflow.org", **scripts: str | tuple[int, str]) -> Resource:
    """An MXJob in the list flavor: ``scheduler="exit 0", worker=(2, "sleep 1")``; other replicas run until deleted."""
    entries = []
    for type_ in ("scheduler", "server", "worker"):
        given = scripts.get(type_, UNTIL_ENDED)
        count, script = given if isinstance(given, tuple) else (1, given)
        entries.append({"replicas": count, "mxReplicaType": type_.upper(), "template": shell_template(script)})
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "MXJob",
        "metadata": {"name": name},
        "spec": {"replicaSpecs": entries},
    }


def v1_job(name: str, restart_policy: str = "Never", run_policy: Resource | None = None, **scripts: Any) -> Resource:
    """The same in the v1 flavor."""
    replicas = {}
    for type_ in ("scheduler", "server", "worker"):
        given = scripts.get(type_, UNTIL_ENDED)
        count, script = given if isinstance(given, tuple) else (1, given)
        replicas[type_.title()] = {
            "replicas": count,
            "restartPolicy": restart_policy,
            "template": shell_template(script, None),
        }
    spec: Resource = {"jobMode": "MXTrain", "mxReplicaSpecs": replicas}
    if run_policy:
        spec["runPolicy"] = run_policy
    return {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name}, "spec": spec}


def config_of_user(here: Cluster, name: str, verbs: list[str]) -> Resource:
    """The kubeconfig of a new service account, which may do ``verbs`` with MXJobs of the namespace and nothing else."""
    rbac, where, named = client.RbacAuthorizationV1Api(here.core.api_client), here.namespace, {"name": name}
    here.core.create_namespaced_service_account(where, {"metadata": named})
    rule = {"apiGroups": ["kubeflow.org"], "resources": ["mxjobs"], "verbs": verbs}
    rbac.create_namespaced_role(where, {"metadata": named, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", **named}
    subject = {"kind": "ServiceAccount", "namespace": where, **named}
    rbac.create_namespaced_role_binding(where, {"metadata": named, "roleRef": role, "subjects": [subject]})
    token = here.core.create_namespaced_service_account_token(name, where, {"spec": {}}).status.token
    made: Resource = yaml.safe_load(here.kubeconfig.read_text())
    return {**made, "users": [{"name": one["name"], "user": {"token": token}} for one in made["users"]]}
