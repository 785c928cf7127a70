"""An API server in memory: it stores objects, refuses requests and sends watch events by the rules of the real one.

``tests/unit/support/test_fake_api_server.py`` lists the rules. Deviations from the real server: no unknown field is
rejected (``fieldValidation``), no defaults are set but a pod's phase, managedFields do not exist, the versions of a
group are one, and ``dryRun`` and server-side apply are not served.

Stored objects are never changed in place, so responses, watch events and snapshots refer to them without a copy.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import JSON, JSON_PATCH, MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError, error_of, is_success

from support import json_patch, native_gangs
from support.builders import NOW

Resource = dict[str, Any]
Key = tuple[str, str]
"""Namespace and plural, such as ``("default", "pods")``; without a namespace for objects of the cluster."""

PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<ns>[^/]+))?/(?P<plural>[^/]+)(?P<rest>/.*)?")
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

FOREGROUND = "foregroundDeletion"
WITHOUT_GENERATION = ("configmaps", "secrets", "services", "events", "serviceaccounts", "roles", "rolebindings")
RETURNED_WHEN_DELETED = ("pods", "services", "serviceaccounts")
"""Kinds of which DELETE returns the object even where it is gone at once; of others it returns a Status."""
GRACE_PERIOD = 30


@dataclass(frozen=True)
class Call:
    """A request."""

    method: str
    group: str
    namespace: str
    plural: str
    name: str = ""
    subresource: str = ""
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    content_type: str = JSON

    @property
    def key(self) -> Key:
        return self.namespace, self.plural

    @property
    def resource(self) -> str:
        """The resource as error messages name it: ``pods``, ``tfjobs.kubeflow.org``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True)
class Response:
    """``content`` is an object, or the text of a response that is no JSON; a ``status`` of 0 stands for no response."""

    status: int
    content: Resource | str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED or DELETED, with the object as of then."""

    type: str
    key: Key
    object: Resource


@dataclass
class Fault:
    """``times`` requests that match get ``response`` instead of the server's, after the write took effect or not."""

    response: Response
    matches: Callable[[Call], bool] = lambda call: True
    takes_effect: bool = False
    times: int = 1


Admission = Callable[[Call, "FakeApiServer"], Response | None]
"""The denial of a create or update, ``None`` where it is permitted."""


class _RefusedError(Exception):
    def __init__(self, response: Response) -> None:
        super().__init__(str(response.content))
        self.response = response


# --- errors


def failure(code: int, reason: str, message: str, **details: Any) -> Response:
    """A Status object."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return Response(code, {**status, "reason": reason, **({"details": details} if details else {}), "code": code})


def no_answer(text: str = "Read timed out. (read timeout=30.0)") -> Response:
    return Response(0, text)


def internal_error(text: str = "etcdserver: request timed out") -> Response:
    return failure(500, "InternalError", f"Internal error occurred: {text}", causes=[{"message": text}])


def too_many_requests(retry_after: int = 1) -> Response:
    """The server's own limits (priority and fairness): no Status object, but a text."""
    return Response(429, "Too many requests, please try again later.\n", {"Retry-After": str(retry_after)})


def denied_by_webhook(text: str, name: str = "rules.example.com", code: int = 400) -> Response:
    """``code`` is what the webhook sets; 400 where it sets none."""
    reason = {400: "BadRequest", 403: "Forbidden"}.get(code, "")
    return failure(code, reason, f'admission webhook "{name}" denied the request: {text}')


def pod_quota(limit: int, name: str = "quota") -> Admission:
    """A ResourceQuota with ``count`` of pods: finished pods do not count, terminating pods do."""

    def check(call: Call, server: FakeApiServer) -> Response | None:
        if (call.method, call.plural) != ("POST", "pods"):
            return None
        used = sum(not _is_finished(pod) for pod in server.objects.get(call.key, {}).values())
        if used < limit:
            return None
        text = f"exceeded quota: {name}, requested: pods=1, used: pods={used}, limited: pods={limit}"
        return forbidden(call, str(call.body["metadata"].get("name")), text)

    return check


def forbidden(call: Call, name: str, text: str) -> Response:
    return failure(
        403, "Forbidden", f'{call.resource} "{name}" is forbidden: {text}', **_details(call, name, call.plural)
    )


def _details(call: Call, name: str, kind: str) -> Resource:
    return {"name": name, **({"group": call.group} if call.group else {}), "kind": kind}


def _already_exists(call: Call, name: str, present: Resource) -> Response:
    text = f'{call.resource} "{name}" already exists'
    if present["metadata"].get("deletionTimestamp"):
        text = f"object is being deleted: {text}"
    return failure(409, "AlreadyExists", text, **_details(call, name, call.plural))


def _not_found(call: Call) -> Response:
    text = f'{call.resource} "{call.name}" not found'
    return failure(404, "NotFound", text, **_details(call, call.name, call.plural))


def _conflict(call: Call, text: str) -> Response:
    message = f'Operation cannot be fulfilled on {call.resource} "{call.name}": {text}'
    return failure(409, "Conflict", message, **_details(call, call.name, call.plural))


def _invalid(call: Call, kind: str, name: str, problem: str) -> Response:
    qualified = f"{kind}.{call.group}" if call.group else kind
    return failure(422, "Invalid", f'{qualified} "{name}" is invalid: {problem}', **_details(call, name, kind))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class FakeApiServer:
    """The objects of all namespaces, and the watch events in the order of the writes."""

    def __init__(self, now: Callable[[], datetime] = lambda: NOW) -> None:
        self.now = now
        self.objects: dict[Key, dict[str, Resource]] = {}
        """By namespace and plural, then by name."""
        self.watch_events: list[WatchEvent] = []
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.admission: list[Admission] = []
        self._version = 0
        self._made: dict[tuple[str, ...], int] = {}

    # --- requests

    def send(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None, content_type: str = JSON
    ) -> Response:
        """The response to a request, an error or not."""
        found = PATH.fullmatch(path)
        if found is None:
            return Response(404, "404 page not found\n")
        _, name, subresource = f"{found['rest'] or ''}//".split("/")[:3]
        where = (found["group"] or "", found["ns"] or "", found["plural"])
        call = Call(method, *where, name, subresource, body, dict(query or {}), content_type)
        self.calls.append(call)
        fault = next((fault for fault in self.faults if fault.times and fault.matches(call)), None)
        if fault:
            fault.times -= 1
            if not fault.takes_effect:
                return fault.response
        response = self._handle(call)
        return fault.response if fault else response

    def request(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None, content_type: str = JSON
    ) -> Resource:
        """Like :meth:`RestClient.request`: the object, or an :class:`ApiError`."""
        response = self.send(method, path, body, query, content_type)
        content = response.content
        if response.status == 0:
            raise ApiError(0, "NoAnswer", f"{method} {path}: {content}")
        if not is_success(response.status):
            raise error_of(response.status, (content if isinstance(content, str) else json.dumps(content)).encode())
        assert not isinstance(content, str)
        return content

    def _handle(self, call: Call) -> Response:
        methods = {
            "GET": self._get,
            "POST": self._post,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }
        try:
            return methods[call.method](call)
        except _RefusedError as refused:
            return refused.response

    def _get(self, call: Call) -> Response:
        if call.name:
            return Response(200, self._found(call))
        wanted = dict(term.split("=", 1) for term in filter(None, call.query.get("labelSelector", "").split(",")))
        listed = [key for key in self.objects if key[1] == call.plural and call.namespace in ("", key[0])]
        items = [x for key in listed for x in self.objects[key].values() if wanted.items() <= _labels(x).items()]
        involved = call.query.get("fieldSelector", "").partition("involvedObject.uid=")[2]
        if involved:
            items = [one for one in items if one["involvedObject"].get("uid") == involved]
        return Response(200, {"kind": "List", "metadata": {"resourceVersion": str(self._version)}, "items": items})

    def _post(self, call: Call) -> Response:
        made = json.loads(json.dumps(call.body))
        metadata = made["metadata"]
        if metadata.setdefault("namespace", call.namespace) != call.namespace:
            text = "the namespace of the provided object does not match the namespace sent on the request"
            raise _RefusedError(failure(400, "BadRequest", text))
        if "name" not in metadata and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + f"{self._count(*call.key, metadata['generateName']):05}"
        name = metadata.get("name") or ""
        allowed = DNS_1035 if call.plural == "services" else DNS_SUBDOMAIN
        if not allowed.fullmatch(name):
            raise _RefusedError(
                _invalid(call, made["kind"], name, f'metadata.name: Invalid value: "{name}": a lowercase name')
            )
        self._admit(call)  # a quota comes before the name
        if present := self.objects.get(call.key, {}).get(name):
            raise _RefusedError(_already_exists(call, name, present))
        for unwanted in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(unwanted, None)
        metadata["uid"] = f"{made['kind'].lower()}-{name}-{self._count(*call.key, name)}"[-63:]
        metadata["creationTimestamp"] = clock.stamp(self.now())
        if call.plural not in WITHOUT_GENERATION:
            metadata["generation"] = 1
        made.pop("status", None)
        if native_gangs.is_group(call.group, call.plural):
            native_gangs.admit(made)
        if call.plural == "pods":
            made["status"] = {"phase": "Pending"}
        return Response(201, self.store("ADDED", call.key, made))

    def _put(self, call: Call) -> Response:
        new = json.loads(json.dumps(call.body))
        old = self._found(call)
        uid = new["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            meta = old["metadata"]["uid"]
            raise _RefusedError(
                _conflict(call, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta}")
            )
        if "resourceVersion" not in new["metadata"] and _is_custom(call):
            problem = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise _RefusedError(_invalid(call, old["kind"], call.name, problem))
        return Response(200, self._update(call, old, new))

    def _patch(self, call: Call) -> Response:
        old = self._found(call)
        if call.content_type == JSON_PATCH:
            try:
                new = json_patch.apply(old, json.loads(json.dumps(call.body)))
            except json_patch.NotApplicable as e:
                text = "the server rejected our request due to an error in our request"
                raise _RefusedError(failure(422, "Invalid", text)) from e
        elif call.content_type == MERGE_PATCH:
            new = json_patch.merge(old, json.loads(json.dumps(call.body)))
        else:
            text = "the body of the request was in an unknown format"
            raise _RefusedError(failure(415, "UnsupportedMediaType", text))
        if new["metadata"].get("uid") != old["metadata"]["uid"]:
            raise _RefusedError(
                _invalid(call, old["kind"], call.name, "metadata.uid: Invalid value: field is immutable")
            )
        return Response(200, self._update(call, old, new))

    def _update(self, call: Call, old: Resource, new: Resource) -> Resource:
        before, after = old["metadata"], new["metadata"]
        if after.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
            raise _RefusedError(_conflict(call, MODIFIED))
        if call.subresource == "status":
            new = {**old, "status": new.get("status")}
        else:
            kept = ("uid", "name", "namespace", "creationTimestamp", "generation", "resourceVersion")
            kept += ("deletionTimestamp", "deletionGracePeriodSeconds")
            new = {**new, "metadata": {**after, **{key: before[key] for key in kept if key in before}}}
            new.pop("status", None)  # all kinds that have one have the subresource
            new = {**new, **({"status": old["status"]} if "status" in old else {})}
            added = set(new["metadata"].get("finalizers") or ()) - set(before.get("finalizers") or ())
            if before.get("deletionTimestamp") and added:
                problem = (
                    "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers {sorted(added)}"
                )
                raise _RefusedError(_invalid(call, old["kind"], call.name, problem))
            if native_gangs.is_group(call.group, call.plural) and (problem := native_gangs.problem_of_update(old, new)):
                raise _RefusedError(_invalid(call, old["kind"], call.name, problem))
            if "generation" in before and _desired(new) != _desired(old):
                new["metadata"]["generation"] += 1
        self._admit(call)
        if new == old:
            return old
        if before.get("deletionGracePeriodSeconds") == 0 and not new["metadata"].get("finalizers"):
            return self._remove(call.key, new)
        return self.store("MODIFIED", call.key, new)

    def _delete(self, call: Call) -> Response:
        old = self._found(call)
        metadata, options = old["metadata"], call.body or {}
        self._check_preconditions(call, metadata, options.get("preconditions") or {})
        finalizers = list(metadata.get("finalizers") or ())
        if options.get("propagationPolicy") == "Foreground" and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        grace = _grace_period(old, options) if call.plural == "pods" else 0
        if metadata.get("deletionTimestamp"):
            grace = min(grace, metadata["deletionGracePeriodSeconds"])
        if not grace and not finalizers:
            gone = self._remove(call.key, old)
            if call.plural in RETURNED_WHEN_DELETED:
                return Response(200, gone)
            details = {**_details(call, call.name, call.plural), "uid": metadata["uid"]}
            return Response(
                200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
            )
        when = {
            "deletionTimestamp": clock.stamp(self.now() + timedelta(seconds=grace)),
            "deletionGracePeriodSeconds": grace,
        }
        if metadata.get("deletionTimestamp") and grace == metadata["deletionGracePeriodSeconds"]:
            when = {}
        elif "generation" in metadata and not metadata.get("deletionTimestamp"):
            when["generation"] = metadata["generation"] + 1
        new = {**old, "metadata": {**metadata, **when, **({"finalizers": finalizers} if finalizers else {})}}
        return Response(200, old if new == old else self.store("MODIFIED", call.key, new))

    # --- what happens beside the requests

    def add(self, key: Key, resource: Resource) -> Resource:
        """Store a copy of a complete object as it is, uid included."""
        made = copy.deepcopy(resource)
        made["metadata"].setdefault("uid", f"{key[1]}-{made['metadata']['name']}")
        return self.store("ADDED", key, made)

    def garbage(self) -> list[tuple[Key, Resource]]:
        """The objects that the garbage collector would delete: all their owners are gone, or wait for them."""
        by_uid = {x["metadata"]["uid"]: x for objects in self.objects.values() for x in objects.values()}

        def is_gone(uid: str) -> bool:
            return uid not in by_uid or FOREGROUND in (by_uid[uid]["metadata"].get("finalizers") or ())

        return [
            (key, x)
            for key, objects in self.objects.items()
            for x in objects.values()
            if (owners := _owners(x)) and all(map(is_gone, owners)) and not x["metadata"].get("deletionTimestamp")
        ]

    def collect_garbage(self) -> bool:
        """Delete one dependent, or end one foreground deletion that waited for its dependents; whether there was one."""
        for (namespace, plural), x in self.garbage():
            metadata = x["metadata"]
            options = {"propagationPolicy": "Background", "preconditions": {"uid": metadata["uid"]}}
            self._handle(Call("DELETE", "", namespace, plural, metadata["name"], body=options))
            return True
        everything = [(key, x) for key, objects in self.objects.items() for x in objects.values()]
        for key, x in everything:
            finalizers = x["metadata"].get("finalizers") or ()
            if FOREGROUND not in finalizers or any(x["metadata"]["uid"] in _owners(other) for _, other in everything):
                continue
            left = [f for f in finalizers if f != FOREGROUND]
            new = {**x, "metadata": {**x["metadata"], "finalizers": left}}
            self._update(Call("PUT", "", *key, x["metadata"]["name"]), x, new)
            return True
        return False

    def release_groups(self) -> bool:
        """Remove the finalizer of the groups of Kubernetes itself that have no pods left; whether there was one."""
        found = native_gangs.released(self.objects)
        for group in found:
            metadata = {**group["metadata"], "finalizers": []}
            key = (metadata["namespace"], native_gangs.PLURAL)
            self._update(Call("PUT", "", *key, metadata["name"]), group, {**group, "metadata": metadata})
        return bool(found)

    def copy(self) -> FakeApiServer:
        """A server with the same content, which shares the unchanged objects."""
        twin = copy.copy(self)
        twin.objects = {key: dict(objects) for key, objects in self.objects.items()}
        twin.watch_events, twin.calls = list(self.watch_events), list(self.calls)
        twin.faults, twin.admission = list(self.faults), list(self.admission)
        twin._made = dict(self._made)  # noqa: SLF001 - of the same class
        return twin

    # --- implementation

    def _found(self, call: Call) -> Resource:
        found = self.objects.get(call.key, {}).get(call.name)
        if found is None:
            raise _RefusedError(_not_found(call))
        return found

    def _admit(self, call: Call) -> None:
        for rule in self.admission:
            if denial := rule(call, self):
                raise _RefusedError(denial)

    @staticmethod
    def _check_preconditions(call: Call, metadata: Resource, wanted: Resource) -> None:
        if (uid := wanted.get("uid")) not in (None, metadata["uid"]):
            text = f"the UID in the precondition ({uid}) does not match the UID in record ({metadata['uid']}). "
            text += "The object might have been deleted and then recreated"
            raise _RefusedError(_conflict(call, text))
        if (version := wanted.get("resourceVersion")) not in (None, metadata["resourceVersion"]):
            text = f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            text += f"({metadata['resourceVersion']}). The object might have been modified"
            raise _RefusedError(_conflict(call, text))

    def store(self, type_: str, key: Key, resource: Resource) -> Resource:
        self._version += 1
        stored = {**resource, "metadata": {**resource["metadata"], "resourceVersion": str(self._version)}}
        self.objects.setdefault(key, {})[resource["metadata"]["name"]] = stored
        self.watch_events.append(WatchEvent(type_, key, stored))
        return stored

    def _remove(self, key: Key, resource: Resource) -> Resource:
        gone = self.store("DELETED", key, resource)
        del self.objects[key][resource["metadata"]["name"]]
        return gone

    def _count(self, *what: str) -> int:
        self._made[what] = self._made.get(what, 0) + 1
        return self._made[what]


class FakeRestClient(RestClient):
    """The client of a reconcile, connected to a :class:`FakeApiServer`."""

    def __init__(self, server: FakeApiServer, executor: BoundedExecutor | None = None) -> None:
        self.server = server
        self.executor = executor or BoundedExecutor(1)

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = JSON) -> Any:
        return self.server.request(method, path, body, query, content_type)


def _labels(resource: Resource) -> Mapping[str, str]:
    return resource["metadata"].get("labels") or {}


def _owners(resource: Resource) -> Sequence[str]:
    return [r["uid"] for r in resource["metadata"].get("ownerReferences") or ()]


def _desired(resource: Resource) -> Resource:
    return {key: value for key, value in resource.items() if key not in ("metadata", "status")}


def _is_custom(call: Call) -> bool:
    return "." in call.group and not call.group.endswith(".k8s.io")


def _is_finished(pod: Resource) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _grace_period(pod: Resource, options: Resource) -> int:
    """Seconds; 0 of a pod that no kubelet runs: it has finished, or it is not scheduled."""
    scheduled = pod["spec"].get("nodeName") or pod["status"].get("phase") == "Running"
    if _is_finished(pod) or not scheduled:
        return 0
    asked = options.get("gracePeriodSeconds")
    return int(pod["spec"].get("terminationGracePeriodSeconds", GRACE_PERIOD) if asked is None else asked)
