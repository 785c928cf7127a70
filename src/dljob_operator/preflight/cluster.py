"""Reads what decides whether running jobs can be adopted, and has each job judged."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import preflight
from ansible_collections.dljob.operator.plugins.module_utils.logic.preflight import Found, Problem, Served, Verdict
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS, owned_kind
from ansible_collections.dljob.operator.plugins.module_utils.shared.paging import pages
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.cache import nesting
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi

_LOG = logging.getLogger(__name__)
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_PAGE = 500

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The verdicts on the running jobs, and the problems of definitions, also of those without jobs."""

    verdicts: tuple[Verdict, ...]
    definitions: tuple[Problem, ...]


@dataclass(frozen=True)
class Jobs:
    """The running jobs of a kind, and the problems of its definition."""

    items: tuple[Object, ...]
    definition: tuple[Problem, ...]


class ClusterReader:
    """Reads the cluster. The only requests besides GET are reviews of permissions, which store nothing."""

    def __init__(self, api: KubeApi, account: str = "", namespaces: tuple[str, ...] = ()) -> None:
        self._api = api
        self._account = account
        self._namespaces = namespaces
        self._allowed: dict[tuple[str, str], bool] = {}

    def jobs(self, kind: str, served: Served | None) -> Jobs:
        """Read the running jobs of a kind of training-operator; none if the cluster does not have the kind."""
        plural = f"{kind.lower()}s"
        definition = self._find(f"{_DEFINITIONS}/{plural}.{preflight.GROUP}")
        if definition is None:
            return Jobs((), ())
        versions = served.kind.versions if served else ()
        api_version = f"{preflight.GROUP}/{_version(definition, versions)}"
        api_resource = ApiResource(f"/apis/{api_version}", plural)
        items = tuple(
            {**resource, "apiVersion": api_version, "kind": kind}
            for namespace in self._namespaces or ("",)
            for resource in self._list(api_resource.collection(namespace))
            if preflight.is_running(resource)
        )
        return Jobs(items, preflight.judge_definition(definition, versions))

    def pods_and_services(self, namespace: str) -> list[Object]:
        """Read all pods and Services of a namespace, because a name may be taken by any of them."""
        return [
            {**found, "kind": kind} for kind in ("Pod", "Service") for found in self._list(_collection(kind, namespace))
        ]

    def others(self, manifests: Iterable[Object]) -> list[Object]:
        """Read those of the objects that exist."""
        found: list[Object] = []
        for manifest in manifests:
            metadata, kind = manifest["metadata"], owned_kind(manifest)
            present = self._find(f"{_collection(kind.name, metadata['namespace'])}/{metadata['name']}")
            if present is not None:
                found.append({**present, "kind": kind.kind, "apiVersion": kind.api_version})
        return found

    def unpatchable(self, namespace: str, kinds: Iterable[str]) -> set[str]:
        """Return the kinds of objects that the operator's service account may not patch in the namespace."""
        return {kind for kind in kinds if self._account and not self._may_patch(kind, namespace)}

    def _may_patch(self, kind: str, namespace: str) -> bool:
        if (kind, namespace) not in self._allowed:
            owned = OWNED_KINDS[kind]
            wanted = {"verb": "patch", "group": owned.group, "resource": owned.plural, "namespace": namespace}
            of, _, name = self._account.partition(":")
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": f"system:serviceaccount:{of}:{name}",
                    "groups": ["system:serviceaccounts", f"system:serviceaccounts:{of}", "system:authenticated"],
                    "resourceAttributes": wanted,
                },
            }
            status = self._api.request("POST", _REVIEWS, review).get("status") or {}
            self._allowed[kind, namespace] = status.get("allowed") is True
        return self._allowed[kind, namespace]

    def _find(self, path: str) -> Object | None:
        try:
            return self._api.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _list(self, path: str) -> Iterator[Object]:
        for page in pages(lambda query: self._api.list_objects(path, query), {}, _PAGE):
            for item in page.get("items") or ():
                if nesting.UNREADABLE in item:
                    nesting.log_ignored(_LOG, path=path, name=item["metadata"]["name"])
                else:
                    yield item


def judge_all(
    reader: ClusterReader, served: Mapping[str, Served], now: datetime, gang: GangScheduler | None = None
) -> Answer:
    """Judge all running jobs, in the order of namespace, name and kind."""
    by_kind = {kind: reader.jobs(kind, served.get(kind)) for kind in preflight.KINDS}
    jobs = [(job, jobs.definition) for jobs in by_kind.values() for job in jobs.items]
    namespaces = {str(job["metadata"]["namespace"]) for job, _ in jobs}
    in_namespace = {namespace: reader.pods_and_services(namespace) for namespace in namespaces}
    verdicts = []
    for job, definition in jobs:
        namespace, of = job["metadata"]["namespace"], served.get(job["kind"])
        manifests = preflight.other_objects(job, of, now, gang) if of else ()
        kinds = {"Pod", "Service", *(owned_kind(manifest).name for manifest in manifests)}
        found = Found(
            [*in_namespace[namespace], *reader.others(manifests)], reader.unpatchable(namespace, kinds), definition
        )
        verdicts.append(preflight.judge(job, of, found, now, gang))
    verdicts.sort(key=lambda verdict: (verdict.namespace, verdict.name, verdict.kind))
    return Answer(tuple(verdicts), tuple(problem for jobs in by_kind.values() for problem in jobs.definition))


def _collection(kind: str, namespace: str) -> str:
    owned = OWNED_KINDS[kind]
    return ApiResource(owned.prefix, owned.plural).collection(namespace)


def _version(definition: Object, wanted: Iterable[str]) -> str:
    """Return the version in which to read the objects: one of `wanted` if it is served, else the stored one."""
    versions = definition["spec"]["versions"]
    served = [version["name"] for version in versions if version.get("served")]
    stored = next((version["name"] for version in versions if version.get("storage")), "")
    return next((version for version in wanted if version in served), stored if stored in served else served[0])
