"""Simulated GPUs in the node's status, which are sufficient for the scheduler.

All tests share the node's status: tests that change it are marked `serial`. (An xdist group would do, but pytest-xdist 3.8
does not keep groups with pytest 9.2, whose node ids cannot be renamed.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devtools.testbed.base.settings import settings_from
from devtools.testbed.cluster.gpu import ALPHA_NAME, status_patch
from kubernetes import client, watch

from support.operator_log import logs

ALPHA = ALPHA_NAME
GPU = "nvidia.com/gpu"


@contextmanager
def advertised(core: client.CoreV1Api, operator_log: Path, resource: str = GPU, count: int = 4) -> Iterator[None]:
    """Advertise ``count`` of them, as ``python -m devtools.testbed.cluster gpu`` does, until the end of the context.

    Before and after it, wait until the operator has seen the change: the names in a job's pods depend on it.
    """
    changed = "extended resources of the nodes changed"
    with logs(operator_log, changed):
        _advertise(core, resource, count)
    try:
        yield
    finally:
        with logs(operator_log, changed):
            core.patch_node_status(settings_from().node, json.loads(status_patch(resource, 0)))


def _advertise(core: client.CoreV1Api, resource: str, count: int) -> None:
    """Wait until the kubelet has made the capacity allocatable."""
    node = settings_from().node
    patched = core.patch_node_status(node, json.loads(status_patch(resource, count)))
    stream = watch.Watch().stream(
        core.list_node,
        field_selector=f"metadata.name={node}",
        resource_version=patched.metadata.resource_version,
        timeout_seconds=60,
    )
    if (patched.status.allocatable or {}).get(resource) != str(count):
        assert any((e["object"].status.allocatable or {}).get(resource) == str(count) for e in stream), resource
