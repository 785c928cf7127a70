"""The port of a job whose pods are on the network of their nodes (``hostNetwork``) and that names none.

The coordinator of JAX binds its port with SO_REUSEPORT: with the default port, two jobs on one node share it without an
error, and the processes of one reach the coordinator of the other. A launcher of PaddlePaddle that finds the port of
its server in use joins the server of the other job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping, maps

FIRST, COUNT = 20000, 10000
"""Below the ports of NodePort Services, from 30000 on, and those that Linux gives to connections, from 32768 on."""


def of_job(uid: str) -> int:
    """The port of the job with that ``uid``, the same at every reconcile."""
    return FIRST + int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") % COUNT


def is_on_host(entry: Mapping[str, Any]) -> bool:
    """Whether a replica spec, which may be malformed, has pods on the network of their nodes."""
    return any(as_mapping(template.get("spec")).get("hostNetwork") is True for template in _templates(entry))


def _templates(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield as_mapping(entry.get("template"))
    for group in maps(entry.get("groups")):
        yield as_mapping(group.get("template"))
