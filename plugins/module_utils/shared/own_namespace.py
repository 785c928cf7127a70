"""The namespace that this process runs in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace(environ: Mapping[str, str], file: Path = NAMESPACE_FILE) -> str:
    """``POD_NAMESPACE``, else the namespace of the service account, else "" outside a cluster."""
    named = environ.get("POD_NAMESPACE", "").strip()
    if named:
        return named
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
