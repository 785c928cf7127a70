"""The finalizer of a watch entry: added before the first run and removed after the run for the deletion."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.cache.predicates import is_leaving
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.watches import Watch


def finalizers_of(resource: Object) -> list[str]:
    return list(resource["metadata"].get("finalizers") or ())


def is_finalizing(watch: Watch, resource: Object) -> bool:
    """Whether `resource` is being deleted and waits for `watch`'s finalizer."""
    return is_leaving(resource) and watch.finalizer is not None and watch.finalizer.name in finalizers_of(resource)


def needs_finalizer(watch: Watch, resource: Object) -> bool:
    """Whether `watch` has a finalizer that `resource` lacks."""
    if watch.finalizer is None or is_leaving(resource):
        return False
    return watch.finalizer.name not in finalizers_of(resource)


def add_finalizer(api: KubeApi, api_resource: ApiResource, watch: Watch, resource: Object) -> Object:
    """Add the finalizer and return the updated object."""
    assert watch.finalizer is not None
    return _set(api, api_resource, resource, [*finalizers_of(resource), watch.finalizer.name])


def remove_finalizer(api: KubeApi, api_resource: ApiResource, watch: Watch, resource: Object) -> None:
    """Remove the finalizer. An object that was deleted meanwhile is no error."""
    assert watch.finalizer is not None
    try:
        _set(api, api_resource, resource, [name for name in finalizers_of(resource) if name != watch.finalizer.name])
    except ApiError as error:
        if error.status != 404:
            raise


def _set(api: KubeApi, api_resource: ApiResource, resource: Object, finalizers: list[str]) -> Object:
    """Write the list for the resource version that was read, so that no finalizer of others is lost."""
    metadata = resource["metadata"]
    body = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
    return api.request(
        "PATCH",
        api_resource.item(metadata.get("namespace", ""), metadata["name"]),
        body,
        content_type=MERGE_PATCH,
    )
