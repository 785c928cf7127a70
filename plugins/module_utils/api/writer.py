"""Applies a plan: auxiliary objects, then Services and pods in parallel, then deletions; last status and Events."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import event_sender, generated, paths
from ansible_collections.dljob.operator.plugins.module_utils.api.budget import Budget
from ansible_collections.dljob.operator.plugins.module_utils.api.event_sender import EventSender
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps, ask
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import (
    Owner,
    belongs_to_predecessor,
    is_owned_by,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import refusal, slices, taken_name
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import (
    JSON_PATCH,
    MERGE_PATCH,
    METADATA,
    ApiRequest,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.delete_options import delete_options
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote, event_of
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_MANAGED_BY, MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import MERGE, NEVER, REPLACE, owned_kind
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import (
    ApplyResult,
    ObservedVersion,
    kind_of,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import ANNOTATION_SPEC_HASH
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan

Resource = Mapping[str, Any]
FIRST_AT_ONCE = 8
"""Creations, or deletions, at a time in the beginning; each that succeeds permits one more, so their number doubles
with each round trip, as the Job controller's does. So a quota that denies a job of many pods answers few requests, and
an admission webhook that does not answer leaves threads to the other jobs of a batch. A small job, which begins with
all of its objects, loses no time."""


def observed_version(resource: Resource) -> ObservedVersion:
    """The uid and the resource version of an object from a response."""
    metadata = resource["metadata"]
    return str(metadata["uid"]), str(metadata["resourceVersion"])


def _explain(error: ApiError, manifest: Resource) -> str:
    """The message of a failed creation; of a kind that the cluster does not serve, with what is missing."""
    kind = owned_kind(manifest)
    if error.status != 404 or not kind.remedy:
        return error.message
    return f"{error.message}: the cluster has no {kind.plural}.{kind.group}; {kind.remedy}"


def _sort(written: ApplyResult, manifests: Sequence[Resource]) -> None:
    """Give the messages the order of ``manifests``: the writes end in any order."""
    places = {owned_objects.text_of(one): place for place, one in enumerate(manifests)}
    for texts in (written.refused, written.postponed, written.taken):
        texts.sort(key=lambda text: (places.get(text.partition(": ")[0], len(places)), text))


def _is_outdated(manifest: Resource, present: Resource) -> bool:
    """Whether an object that the pods need, and that exists, has to be replaced before them."""
    kind = owned_kind(manifest)
    if kind.update == MERGE:
        return True
    if kind.watched or kind.update != REPLACE:
        return False  # the plan has compared the hash of what is watched
    hashes = [(one["metadata"].get("annotations") or {}).get(ANNOTATION_SPEC_HASH) for one in (manifest, present)]
    return hashes[0] != hashes[1] or manifest.get("rules") != present.get("rules")


def _in_turn(services: Sequence[Resource], pods: Sequence[Resource]) -> list[Resource]:
    """One of each by turns, so that a slice that time cuts off has the Services of its pods."""
    return [one for pair in zip_longest(services, pods) for one in pair if one is not None]


def _roles_first(manifests: Sequence[Resource]) -> list[list[Resource]]:
    """The objects in two parts, without empty ones: the API server compares the rights of who creates a RoleBinding
    with those of the Role."""
    parts: dict[bool, list[Resource]] = {False: [], True: []}
    for manifest in manifests:
        parts[manifest["kind"] == "RoleBinding"].append(manifest)
    return [part for part in parts.values() if part]


def _named(role: Resource) -> set[str]:
    """The objects that the rules of a Role name; none of other kinds."""
    return {name for rule in role.get("rules") or () for name in rule.get("resourceNames") or ()}


def _replacement(manifest: Resource, present: Resource) -> Resource:
    """What an owned object becomes.

    The API server answers 409 where another one has the name meanwhile. It also does where an object that is not
    watched, a Role, has changed since it was read: a late request of a deposed leader then does not restore a right.
    """
    kind, metadata = owned_kind(manifest), present["metadata"]
    if kind.update != MERGE:
        fields = ("uid",) if kind.watched else ("uid", "resourceVersion")
        read = {field: metadata[field] for field in fields if field in metadata}
        return {**manifest, "metadata": {**manifest["metadata"], **read}}
    ours = manifest["metadata"]
    merged = {field: {**(metadata.get(field) or {}), **ours[field]} for field in ("labels", "annotations")}
    theirs = {name: value for name, value in (present.get("spec") or {}).items() if name not in kind.fields}
    return {**present, "metadata": {**metadata, **merged}, "spec": {**manifest["spec"], **theirs}}


class Writer:
    """Writes the objects of one job. With ``dry_run`` the API server validates every write and stores none."""

    def __init__(
        self, api: RestClient, resource: Resource, dry_run: bool = False, sender: EventSender | None = None
    ) -> None:
        self._api = api
        self._sender = sender
        self._resource = resource
        self._uid = str(resource["metadata"].get("uid") or "")
        self._namespace = str(resource["metadata"]["namespace"])
        self._query = {"fieldManager": MANAGER, "fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        self._dry_run = dry_run
        self._pod_uids: dict[str, str] = {}  # of the pods that this writer has created
        self._still_used: frozenset[str] = frozenset()
        self._reads_first = False
        self._outdated: Mapping[str, str] = {}
        self._found: dict[str, Resource] = {}  # what has been read before a creation
        self._starts_slowly = refusal.is_of_a_creation(resource.get("status"))
        self._lock = threading.Lock()

    def objects(self, plan: Plan, budget: Budget | None = None) -> ApplyResult:
        """Create, replace and delete the objects of ``plan``. Errors of single objects are part of the result.

        Pods are created, and objects deleted, only as long as ``budget`` permits; ``None`` is no limit. The creations
        start slowly, and those of a kind end at its first object that a quota or an admission rule denies; where the
        last try of the job was refused, at the first one that is refused.
        """
        written = ApplyResult()
        self._still_used = frozenset(plan.still_used)
        self._reads_first, self._outdated = plan.reads_first, plan.outdated
        if plan.reads_first and plan.auxiliary_objects:
            self._api.each(plan.auxiliary_objects, self._look)
        first = 1 if self._starts_slowly else FIRST_AT_ONCE
        for manifests in _roles_first(plan.auxiliary_objects):
            at_once = self._slow_start(written.created, None, first)
            self._api.each(manifests, lambda manifest: self._create_auxiliary(manifest, written), at_once)
        if written.incomplete:
            _sort(written, plan.auxiliary_objects)
            return written  # the pods need these objects
        # Services start first, but the pods do not wait for them: a pod needs DNS names once it runs, which takes
        # longer than these writes. Where the API server rejects a Service, the job fails and its pods are deleted.
        free, others = plan.services[: slices.FREE_SERVICES], plan.services[slices.FREE_SERVICES :]
        if self._starts_slowly:
            self._create_all(free, written, None, first=1)
            self._create_all(others, written, budget, first=1)
            if not written.taken:
                self._create_all(plan.pods, written, budget, first=1)
        else:
            self._create_all([*free, *_in_turn(others, plan.pods)], written, budget, free=free)
            if any(kind_of(text) == "Service" for text in written.taken):
                self._withdraw(plan.pods, written)
        self._api.each(
            plan.deletions,
            lambda deletion: self._delete(deletion, written, budget),
            self._slow_start(written.deleted, budget),
        )
        _sort(written, [*plan.pods, *plan.services])
        for manifest in plan.ensured_objects:
            if not self._api.run(self._ensure(manifest, written)) and not owned_kind(manifest).watched:
                break  # the plan puts last what has to wait for this object
        return written

    def _create_auxiliary(self, manifest: Resource, written: ApplyResult) -> Steps[None]:
        """Create what the pods need, or replace it where it is outdated."""
        present = yield from self._obtain(manifest, written)
        if present is None or not _is_outdated(manifest, present) or self._takes_rights(manifest, present):
            return
        replaced = ApplyResult()
        yield from self._replace(manifest, present, replaced)
        with self._lock:
            written.created += replaced.created
            written.versions += replaced.versions
            written.postponed += [*replaced.postponed, *replaced.refused]  # a job that runs does not fail of it

    def _withdraw(self, pods: Sequence[Resource], written: ApplyResult) -> None:
        """Delete those of ``pods`` that were just created: their DNS names do not resolve while the job waits."""
        names = [str(pod["metadata"]["name"]) for pod in pods]
        made = [Deletion("Pod", name, self._pod_uids[name]) for name in names if name in self._pod_uids]
        if not self._dry_run:
            self._api.each(made, lambda deletion: self._delete(deletion, written))

    def _create_all(
        self,
        manifests: Sequence[Resource],
        written: ApplyResult,
        budget: Budget | None,
        first: int = FIRST_AT_ONCE,
        free: Sequence[Resource] = (),
    ) -> None:
        """Create objects, ``first`` at a time in the beginning; those that are ``free`` whatever the budget."""
        self._api.each(
            manifests,
            lambda manifest: self._create(manifest, written, None if any(manifest is x for x in free) else budget),
            self._slow_start(written.created, budget, first),
        )

    def _slow_start(
        self, succeeded: Sequence[str], budget: Budget | None, first: int = FIRST_AT_ONCE
    ) -> Callable[[], float]:
        """How many writes may run at a time, as a function of those that have been added to ``succeeded`` since."""
        before = len(succeeded)
        return lambda: min(self._at_once(budget), first + len(succeeded) - before)

    def _at_once(self, budget: Budget | None) -> float:
        return self._api.executor.window.width if budget is not None and budget.is_beside_others else math.inf

    def _look(self, manifest: Resource) -> Steps[None]:
        """Read an object that probably exists and that no cache has: cheaper than to have its creation refused."""
        if not self._reads_first or owned_kind(manifest).watched:
            return
        with contextlib.suppress(ApiError):  # its creation says what is wrong
            self._found[owned_objects.text_of(manifest)] = yield ApiRequest("GET", paths.object_path(manifest))

    def _obtain(self, manifest: Resource, written: ApplyResult) -> Steps[Resource | None]:
        """See :meth:`_create`, which is for objects that have not been found."""
        found = self._found.pop(owned_objects.text_of(manifest), None)
        if found is None:
            return (yield from self._create(manifest, written))
        return (yield from self._accept(manifest, found, written))

    def _create(self, manifest: Resource, written: ApplyResult, budget: Budget | None = None) -> Steps[Resource | None]:
        """Returns the object where the job has it already."""
        kind = manifest["kind"]
        if written.predecessors or kind in written.denied:
            return None  # the job's other names are probably taken too, or its other objects denied: do not try each
        if kind in ("Pod", "Service") and budget is not None:
            if not budget.take():
                written.is_partial = True
                return None
            if budget.pauses:
                yield self._api.executor.window.pause
        name = owned_objects.text_of(manifest)
        path = paths.collection(manifest["apiVersion"], kind, self._namespace)
        try:
            began = time.monotonic()
            response = yield ApiRequest("POST", path, generated.complete(manifest), self._query, accept=METADATA)
            self._api.executor.window.measured(time.monotonic() - began)
        except ApiError as e:
            # a quota, or a policy, denies what exists already before the API server compares the names
            if e.reason == "AlreadyExists" or (e.is_denial and (yield from self._has(manifest))):
                return (yield from self._check_owner(manifest, written))
            # of an error other than a denial the first try gives each object its chance
            if e.is_denial or self._starts_slowly:
                written.denied.add(kind)
            self._note(e, f"{name}: {_explain(e, manifest)}", written)
        else:
            self._add(written.created, name)
            if kind == "Pod":
                self._pod_uids[manifest["metadata"]["name"]] = str(response["metadata"].get("uid") or "")
            if lost := adoption.lost_marks(manifest["metadata"], response["metadata"], self._uid):
                # the plan would delete and create the object again and again
                exempt = f"exempt objects with the label {LABEL_MANAGED_BY}={MANAGER} from it"
                self._add(written.refused, f"{name}: a webhook has changed its {' and '.join(lost)}; {exempt}")
            if not self._dry_run and owned_kind(manifest).watched:
                self._add(written.versions, observed_version(response))
        return None

    def _ensure(self, manifest: Resource, written: ApplyResult) -> Steps[bool]:
        """Create the object, or replace it where it exists and belongs to the job. Returns whether it is as wanted."""
        result = ApplyResult()
        if not (yield from self._replace_unread(manifest, result)):
            yield from self._look(manifest)
            present = yield from self._obtain(manifest, result)
            kind = owned_kind(manifest)
            if present is not None and kind.update != NEVER and (kind.watched or _is_outdated(manifest, present)):
                yield from self._replace(manifest, present, result)
        written.created += result.created
        written.adopted += result.adopted
        written.versions += result.versions
        written.optional_failures += [*result.refused, *result.taken]
        written.postponed += result.postponed
        written.waiting += result.waiting
        written.predecessors += result.predecessors
        written.denied |= result.denied
        return not result.incomplete

    def _replace_unread(self, manifest: Resource, written: ApplyResult) -> Steps[bool]:
        """Replace an object of which the plan knows the uid. Returns whether the job still has it."""
        uid, kind = self._outdated.get(owned_objects.text_of(manifest)), owned_kind(manifest)
        if uid is None or kind.update != REPLACE or not kind.watched:
            return False
        return (yield from self._replace(manifest, {"metadata": {"uid": uid}}, written, is_read=False))

    def _replace(
        self, manifest: Resource, present: Resource, written: ApplyResult, *, is_read: bool = True
    ) -> Steps[bool]:
        """Returns whether the object is still ``present``, of one that was read just now in any case."""
        name = owned_objects.text_of(manifest)
        try:
            body = _replacement(manifest, present)
            response = yield ApiRequest("PUT", paths.object_path(manifest), body, self._query, accept=METADATA)
        except ApiError as e:
            if e.status in (404, 409) and not is_read:
                return False
            self._note(e, f"{name}: {e.message}", written)
        else:
            self._add(written.created, name)
            if not self._dry_run and owned_kind(manifest).watched:
                self._add(written.versions, observed_version(response))
        return True

    def _has(self, manifest: Resource) -> Steps[bool]:
        """Whether the job has the object already, of a kind of which it adopts those of another operator."""
        if not owned_kind(manifest).watched:
            return False
        try:
            present = yield ApiRequest("GET", paths.object_path(manifest))
        except ApiError:
            return False
        return is_owned_by(present, Owner(self._namespace, self._uid))

    def _takes_rights(self, manifest: Resource, present: Resource) -> bool:
        """Whether the Role of another operator names more workers of a launcher that runs. The plan does not know them
        before they are adopted; once all are, :meth:`_ensure` replaces it."""
        is_foreign = bool(adoption.missing_labels(present["metadata"], self._uid))
        return is_foreign and not _named(present) <= _named(manifest)

    def _check_owner(self, manifest: Resource, written: ApplyResult) -> Steps[Resource | None]:
        """Check who owns an existing object of that name; return it where it is this job, a success."""
        try:
            present = yield ApiRequest("GET", paths.object_path(manifest))
        except ApiError as e:
            self._add(written.postponed, f"{owned_objects.text_of(manifest)}: {e.message}")
            return None
        return (yield from self._accept(manifest, present, written))

    def _accept(self, manifest: Resource, present: Resource, written: ApplyResult) -> Steps[Resource | None]:
        """Return the object ``present`` where the job owns it, as it is; adopt it, or note why that is not so."""
        name = owned_objects.text_of(manifest)
        if belongs_to_predecessor(present, self._resource):
            self._add(written.predecessors, name)
            if not (owned_kind(manifest).watched or present["metadata"].get("deletionTimestamp")):
                yield from self._delete_left(manifest, present)
        elif present["metadata"].get("deletionTimestamp") and present["metadata"]["uid"] not in self._still_used:
            self._add(written.waiting, name)
        elif not is_owned_by(present, Owner(self._namespace, self._uid)):
            self._add(written.taken, taken_name.explain(manifest, present, self._resource))
            written.denied.add(manifest["kind"])  # the job's other names are probably taken too
        elif owned_kind(manifest).watched and adoption.missing_labels(present["metadata"], self._uid):
            yield from self._adopt(manifest, present, name, written)
        else:
            return present
        return None

    def _delete_left(self, manifest: Resource, present: Resource) -> Steps[None]:
        """Delete what the predecessor has left, of a kind that no engine watches: ``engine/orphans.py`` cannot find it.

        The garbage collector may have missed it, and a job that the API server has under this name and uid proves that
        the predecessor is gone. The operator needs no right to delete these kinds: without one, the status says what to
        do.
        """
        options = delete_options(str(present["metadata"]["uid"]), dry_run=self._dry_run)
        try:
            resource = yield ApiRequest("GET", paths.object_path(self._resource))
            if resource["metadata"]["uid"] == self._uid:
                yield ApiRequest("DELETE", paths.object_path(manifest), options)
        except ApiError:
            return  # the next try follows soon

    def _adopt(self, manifest: Resource, present: Resource, name: str, written: ApplyResult) -> Steps[None]:
        """Give an object of the job, which another operator has created, the labels and the hash of ``manifest``.

        The engine and the plan find the job's objects by them. The spec stays as it is, so a pod that runs goes on.
        """
        metadata = present["metadata"]
        patch = {
            "metadata": {
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion"),
                **adoption.marks(manifest["metadata"]),
            }
        }
        problem = "another operator or a webhook has left it out or changed it"
        try:
            response = yield ApiRequest("PATCH", paths.object_path(manifest), patch, self._query, MERGE_PATCH)
        except ApiError as e:
            problem = e.message
        else:
            if not adoption.missing_labels(response["metadata"], self._uid):
                self._add(written.adopted, name)
                if not self._dry_run:
                    self._add(written.versions, observed_version(response))
                return
        labels = " and ".join(adoption.missing_labels(metadata, self._uid))
        self._add(
            written.postponed,
            f"{name}: it belongs to this job, but lacks the label {labels}: {problem}; label it, or delete it to have "
            "it created again",
        )

    def _delete(self, deletion: Deletion, written: ApplyResult, budget: Budget | None = None) -> Steps[None]:
        if budget is not None and not budget.take():
            written.is_partial = True
            return
        name = f"{deletion.kind}/{deletion.name}"
        path = f"{paths.collection(deletion.api_version, deletion.kind, self._namespace)}/{deletion.name}"
        propagation = owned_kind({"kind": deletion.kind, "apiVersion": deletion.api_version}).propagation
        options = delete_options(
            deletion.uid or None, propagation, force=bool(deletion.lost_node), dry_run=self._dry_run
        )
        try:
            response = yield ApiRequest("DELETE", path, options)
        except ApiError as e:
            if e.status not in (404, 409):  # 404: already deleted; 409: a newer object has that name
                # never a refusal, which would fail the job: nothing is invalid about a deletion, and an admission
                # policy that denies it (422) may permit it later
                self._add(written.postponed, f"{name}: {e.message}")
        else:
            self._add(written.deleted, name)
            if not (self._dry_run or deletion.is_foreign):
                # the response is the object where it still terminates; it is a Status where the object is gone, or an
                # object without a version where somebody else's request has removed it meanwhile
                is_there = response.get("kind") != "Status" and (response.get("metadata") or {}).get("resourceVersion")
                self._add(written.versions, observed_version(response) if is_there else (deletion.uid, None))

    def _note(self, error: ApiError, text: str, written: ApplyResult) -> None:
        self._add(written.refused if error.permanent else written.postponed, text)

    def _add(self, target: list[Any], item: Any) -> None:
        with self._lock:
            target.append(item)

    def status(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the status. Raises a Conflict where the job has changed since it was read; the caller requeues it."""
        patch = [
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": self._resource["metadata"]["resourceVersion"],
            },
            {"op": "add", "path": "/status", "value": status},
        ]
        path = paths.object_path(self._resource, "status")
        return self._api.run(ask(ApiRequest("PATCH", path, patch, self._query, JSON_PATCH, METADATA)))

    def events(self, notes: Iterable[EventNote], now: datetime) -> list[str]:
        """Create Events on the job, later where there is a sender, and return the errors, with a sender those of
        earlier Events. Nothing is retried: the status has the same information."""
        path = paths.collection("v1", "Event", self._namespace)
        made = [
            ApiRequest("POST", path, event_of(self._resource, note, now), self._query, accept=METADATA)
            for note in notes
        ]
        if self._sender is not None:
            return self._sender.send(made)
        return [problem for event in made for problem in event_sender.create(self._api, event)]

    def delete_job(self) -> bool:
        """Delete the job as it was read; the garbage collector deletes the objects that it owns.

        Returns whether it is deleted: not if somebody has changed it since, who may have extended its time to live.
        """
        version = str(self._resource["metadata"].get("resourceVersion") or "")
        options = delete_options(self._uid, version=version, dry_run=self._dry_run)
        try:
            self._api.request("DELETE", paths.object_path(self._resource), options)
        except ApiError as e:
            if e.status not in (404, 409):
                raise
            return e.status == 404
        return True
