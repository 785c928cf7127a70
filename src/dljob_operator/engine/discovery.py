"""Find the API path of a kind."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.kube import KubeApi
from dljob_operator.watches import GVK


@dataclass(frozen=True)
class ApiResource:
    """The API resource of a kind. `prefix` is "/api/v1" or "/apis/<group>/<version>"."""

    prefix: str
    plural: str
    namespaced: bool = True

    def collection(self, namespace: str = "") -> str:
        """Return the path of the objects in `namespace`, or in all namespaces for ""."""
        if namespace and self.namespaced:
            return f"{self.prefix}/namespaces/{namespace}/{self.plural}"
        return f"{self.prefix}/{self.plural}"

    def item(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace)}/{name}"


CONFIG_MAPS = ApiResource("/api/v1", "configmaps")
NODES = ApiResource("/api/v1", "nodes", namespaced=False)
EVENTS = ApiResource("/api/v1", "events")


def find_api_resource(api: KubeApi, gvk: GVK) -> ApiResource | None:
    """Return the API resource of `gvk`, or None if the API server does not serve the kind."""
    prefix = f"/apis/{gvk.api_version}" if gvk.group else f"/api/{gvk.version}"
    try:
        listed = api.get(prefix)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    for api_resource in listed.get("resources", ()):
        if api_resource["kind"] == gvk.kind and "/" not in api_resource["name"]:
            return ApiResource(prefix, api_resource["name"], api_resource["namespaced"])
    return None
