"""Kueue's part of queueing by Workloads that others create, in a :class:`FakeApiServer`, as release 0.19 does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock

from support.fake_api_server import FakeApiServer

Resource = dict[str, Any]
PATH = "/apis/kueue.x-k8s.io/v1beta2"


class FakeKueue:
    """Admits and evicts the only Workload of a namespace."""

    def __init__(self, server: FakeApiServer, namespace: str = "default") -> None:
        self.server = server
        self.namespace = namespace

    @property
    def workload(self) -> Resource | None:
        """``None`` where there is none."""
        return next(iter(self.server.objects.get((self.namespace, "workloads"), {}).values()), None)

    def add_flavor(self, name: str, **spec: Any) -> None:
        self.server.add(("", "resourceflavors"), {"metadata": {"name": name}, "spec": spec})

    def admit(
        self, flavor: str = "", topology: Mapping[str, Any] | None = None, checks: list[Resource] | None = None
    ) -> None:
        """Reserve the quota and admit the Workload, with ``flavor`` for each pod set."""
        assert self.workload
        assignments = [
            {
                "name": one["name"],
                "count": one["count"],
                "flavors": {"cpu": flavor} if flavor else {},
                **({"topologyAssignment": topology} if topology else {}),
            }
            for one in self.workload["spec"]["podSets"]
        ]
        self._set(
            {"QuotaReserved": ("True", "QuotaReserved"), "Admitted": ("True", "Admitted"), "Evicted": ("False", "Q")},
            admission={"clusterQueue": "all", "podSetAssignments": assignments},
            admissionChecks=checks or [],
        )

    def reserve(self, checks: list[Resource]) -> None:
        """Reserve the quota while these admission checks are not ready."""
        self._set(
            {"QuotaReserved": ("True", "QuotaReserved")}, admission={"clusterQueue": "all"}, admissionChecks=checks
        )

    def hold(self, message: str) -> None:
        """Say why there is no quota."""
        self._set({"QuotaReserved": ("False", "Pending", message)})

    def evict(self, reason: str = "Preempted", message: str = "by a higher priority") -> None:
        self._set({"Evicted": ("True", reason, message)})

    def condition(self, type_: str) -> Resource:
        found = (self.workload or {}).get("status", {}).get("conditions") or []
        return next((one for one in found if one["type"] == type_), {})

    def status_of(self, type_: str) -> str:
        return str(self.condition(type_).get("status", ""))

    def _set(self, changes: Mapping[str, tuple[str, ...]], **fields: Any) -> None:
        assert self.workload
        status = self.workload.get("status") or {}
        kept = [one for one in status.get("conditions") or () if one["type"] not in changes]
        now = clock.stamp(self.server.now())
        new = [
            {
                "type": type_,
                "status": values[0],
                "reason": values[1],
                "message": values[2] if len(values) > 2 else "",
                "lastTransitionTime": now,
            }
            for type_, values in changes.items()
        ]
        path = f"{PATH}/namespaces/{self.namespace}/workloads/{self.workload['metadata']['name']}/status"
        changed = {**self.workload, "status": {**status, **fields, "conditions": [*kept, *new]}}
        self.server.request("PUT", path, changed)
