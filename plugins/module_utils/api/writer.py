"""Carries a plan out: Services and the like first, then pods in parallel, then deletions; last status and Events."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import JSON_PATCH, ApiError, RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import (
    belongs_to_predecessor,
    is_owned_by,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import ApplyResult, ObservedVersion
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Deletion, EventNote, Plan

Resource = Mapping[str, Any]
_WATCHED = ("Pod", "Service", "ConfigMap", "Deployment")
"""Of what is created here, the kinds that an engine's watch shows."""


def observed_version(resource: Resource) -> ObservedVersion:
    """The object's uid and the version that this answer shows it at."""
    metadata = resource["metadata"]
    return str(metadata["uid"]), str(metadata["resourceVersion"])


class Writer:
    """Writes for one job. With ``dry_run`` the API server checks every write and keeps none."""

    def __init__(self, api: RestClient, resource: Resource, dry_run: bool = False) -> None:
        self._api = api
        self._resource = resource
        self._uid = str(resource["metadata"].get("uid") or "")
        self._namespace = str(resource["metadata"]["namespace"])
        self._query = {"fieldManager": MANAGER, "fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        self._dry_run = dry_run
        self._lock = threading.Lock()

    def objects(self, plan: Plan) -> ApplyResult:
        """Create and delete what ``plan`` says. Never raises for a single object: what failed is told in the result."""
        written = ApplyResult()
        for companion in plan.auxiliary_objects:
            self._create(companion, written)
        if written.incomplete:
            return written  # they are made together with the pods that need them, and only then
        # Services first, but nobody waits for them: a pod needs its names once it runs, which takes longer than these
        # writes. Where a Service is refused, the pods go with all else that the job has.
        executor = self._api.executor
        executor.map([*plan.services, *plan.pods], lambda manifest: self._create(manifest, written))
        executor.map(plan.deletions, lambda deletion: self._delete(deletion, written))
        for manifest in plan.ensured_objects:
            self._ensure(manifest, written)
        return written

    def _create(self, manifest: Resource, written: ApplyResult) -> None:
        if written.predecessors:
            return  # the rest of the job's names are as likely taken: one request a try, not one for each pod
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        path = paths.collection(manifest["apiVersion"], manifest["kind"], self._namespace)
        try:
            answer = self._api.request("POST", path, manifest, self._query)
        except ApiError as e:
            if e.reason == "AlreadyExists":
                self._check_owner(manifest, name, written)
            else:
                self._note(e, f"{name}: {e.message}", written)
        else:
            self._add(written.created, name)
            if not self._dry_run and manifest["kind"] in _WATCHED:
                self._add(written.versions, observed_version(answer))

    def _ensure(self, manifest: Resource, written: ApplyResult) -> None:
        """Make the object, or replace it where it is there and the job's."""
        tried = ApplyResult()
        self._create(manifest, tried)
        if not tried.changed and not tried.incomplete:
            name = f"{manifest['kind']}/{manifest['metadata']['name']}"
            try:
                answer = self._api.request("PUT", paths.object_path(manifest), manifest, self._query)
            except ApiError as e:
                self._note(e, f"{name}: {e.message}", tried)
            else:
                tried.created.append(name)
                if not self._dry_run:
                    tried.versions.append(observed_version(answer))
        written.created += tried.created
        written.versions += tried.versions
        written.optional_failures += tried.refused
        written.postponed += tried.postponed
        written.waiting += tried.waiting
        written.predecessors += tried.predecessors

    def _check_owner(self, manifest: Resource, name: str, written: ApplyResult) -> None:
        """The name is taken: by an earlier try of ours, which is as good as success, or by a stranger, which is not."""
        try:
            present = self._api.request("GET", paths.object_path(manifest))
        except ApiError as e:
            self._add(written.postponed, f"{name}: {e.message}")
            return
        if belongs_to_predecessor(present, self._resource):
            self._add(written.predecessors, name)
        elif present["metadata"].get("deletionTimestamp"):
            self._add(written.waiting, name)
        elif not is_owned_by(present, self._uid):
            self._add(
                written.refused,
                f"{name}: an object of that name exists and is not this job's; rename the job or delete it",
            )

    def _delete(self, deletion: Deletion, written: ApplyResult) -> None:
        name = f"{deletion.kind}/{deletion.name}"
        path = f"{paths.collection(deletion.api_version, deletion.kind, self._namespace)}/{deletion.name}"
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if deletion.uid:
            body["preconditions"] = {"uid": deletion.uid}  # type: ignore[assignment]
        if self._dry_run:
            body["dryRun"] = ["All"]  # type: ignore[assignment]
        try:
            answer = self._api.request("DELETE", path, body)
        except ApiError as e:
            if e.status not in (404, 409):  # gone, or already another one of that name
                self._note(e, f"{name}: {e.message}", written)
        else:
            self._add(written.deleted, name)
            if not self._dry_run:
                # an object that still terminates comes back as itself, one that is gone as a Status
                gone = answer.get("kind") == "Status"
                self._add(written.versions, (deletion.uid, None) if gone else observed_version(answer))

    def _note(self, error: ApiError, text: str, written: ApplyResult) -> None:
        self._add(written.refused if error.permanent else written.postponed, text)

    def _add(self, target: list[Any], item: Any) -> None:
        with self._lock:
            target.append(item)

    def status(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the status. Fails with Conflict where the job has changed since it was read: then look again."""
        patch = [
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": self._resource["metadata"]["resourceVersion"],
            },
            {"op": "add", "path": "/status", "value": status},
        ]
        return self._api.request("PATCH", paths.object_path(self._resource, "status"), patch, self._query, JSON_PATCH)

    def events(self, notes: Iterable[EventNote], now: datetime) -> list[str]:
        """Write Events on the job. One that fails is not tried again: the status says the same. What went wrong."""
        problems = []
        metadata = self._resource["metadata"]
        moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        for note in notes:
            event = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{metadata['name'][:200]}.", "namespace": self._namespace},
                "involvedObject": {
                    "apiVersion": self._resource["apiVersion"],
                    "kind": self._resource["kind"],
                    "name": metadata["name"],
                    "namespace": self._namespace,
                    "uid": self._uid,
                    "resourceVersion": metadata.get("resourceVersion"),
                },
                "type": note.type,
                "reason": note.reason,
                "message": note.message,
                "source": {"component": MANAGER},
                "reportingComponent": MANAGER,
                "firstTimestamp": moment,
                "lastTimestamp": moment,
                "count": 1,
            }
            try:
                self._api.request("POST", paths.collection("v1", "Event", self._namespace), event, self._query)
            except ApiError as e:
                problems.append(f"Event: {e.message}")
        return problems

    def delete_job(self) -> None:
        """Delete the job itself, and with it all that it owns."""
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": self._uid},
        }
        if self._dry_run:
            body["dryRun"] = ["All"]
        try:
            self._api.request("DELETE", paths.object_path(self._resource), body)
        except ApiError as e:
            if e.status not in (404, 409):
                raise
