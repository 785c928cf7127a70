"""The annotations of jobs that ansible-operator reads itself, and the values with which one job harms all others.

A ValidatingAdmissionPolicy refuses such values (`deploy/kustomize/components/ansible-operator/admission_policy.yaml`).
It does not change the jobs that are older, or that were not its namespaces' when they were created, and not every
cluster has it. So the values are removed before ansible-operator starts: with one of them it would end again and again.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.paging import pages
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.ansible_operator_bridge.annotate import annotate
from dljob_operator.engine.cache import nesting
from dljob_operator.engine.discovery import ApiResource, find_api_resource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, NestedTooDeeply
from dljob_operator.watches import Watch

_LOG = logging.getLogger(__name__)
_PER_PAGE = 50
"""As in the lists of the caches; see `engine/cache/informer_set.py`."""
PREFIX = "ansible.sdk.operatorframework.io/"


@dataclass(frozen=True)
class Limit:
    """The permitted values of an annotation: a pattern in the syntax that RE2 and Python share, and its description.

    `harms_others` says that another value does not only harm the job itself.
    """

    pattern: str
    description: str
    harms_others: bool = True

    def permits(self, value: str) -> bool:
        return not value or re.fullmatch(self.pattern, value) is not None


LIMITS: Mapping[str, Limit] = {
    f"{PREFIX}verbosity": Limit("[0-7]", "a number from 0 to 7"),
    f"{PREFIX}max-runner-artifacts": Limit("[3-9]|[1-9][0-9]{1,2}", "a number from 3 to 999"),
    # of at most some 292 years, which Go can read
    f"{PREFIX}reconcile-period": Limit(
        "0|([0-9]{1,7}([.][0-9]+)?(m?s|m)|[0-9]{1,5}([.][0-9]+)?h){1,4}",
        "a duration such as 1h30m, in h, m, s or ms",
        harms_others=False,
    ),
}
"""By the annotation. ansible-operator v1.42.3, internal/ansible: `verbosity` is the length of a string that it makes,
with 0 `max-runner-artifacts` it keeps the artifacts of all runs, and it does not reconcile a job whose
`reconcile-period` is no duration of Go's. With 1 or 2 every run of ansible-runner 2.4.3 fails after the first; see
`artifacts.FEWEST_RUNS`."""


def remove_harmful(api: KubeApi, watches: Iterable[Watch], namespaces: Sequence[str]) -> None:
    """Remove the values that harm others from all jobs of the `watches`. Never raises; what is left is logged."""
    for watch in watches:
        try:
            api_resource = find_api_resource(api, watch.gvk)
            if api_resource is not None:
                for namespace in namespaces or ("",):
                    _remove(api, api_resource, namespace)
        except (ApiError, ApiConnectionError, RecursionError) as error:
            _LOG.warning(
                "cannot look for annotations that end ansible-operator", extra=logs.fields(kind=watch.gvk, error=error)
            )


def _remove(api: KubeApi, api_resource: ApiResource, namespace: str) -> None:
    path = api_resource.collection(namespace)
    for page in pages(lambda query: api.list_objects(path, query), {}, _PER_PAGE):
        for resource in page["items"]:
            names = list(_harmful(resource))
            if names:
                _patch(api, api_resource, resource["metadata"], names)


def _harmful(resource: Mapping[str, Any]) -> Iterator[str]:
    """Yield the annotations to remove; of a job that is nested too deeply, whose annotations were not read, all."""
    annotations = resource["metadata"].get("annotations") or {}
    for name, limit in LIMITS.items():
        if limit.harms_others and (nesting.UNREADABLE in resource or not limit.permits(annotations.get(name, ""))):
            yield name


def _patch(api: KubeApi, api_resource: ApiResource, metadata: Mapping[str, Any], names: Sequence[str]) -> None:
    where = {"namespace": metadata.get("namespace", ""), "name": metadata["name"]}
    fields = {"resource": api_resource.plural, **where, "annotations": ", ".join(names)}
    try:
        # the response to a success is the whole object, which may be nested too deeply to be decoded
        with contextlib.suppress(NestedTooDeeply):
            annotate(api, api_resource, metadata, dict.fromkeys(names))
    except ApiError as error:
        if error.status not in (404, 409):  # deleted, or another job has the name
            _LOG.error("cannot remove annotations that end ansible-operator", extra=logs.fields(**fields, error=error))
    else:
        _LOG.warning("removed annotations that end ansible-operator", extra=logs.fields(**fields))
