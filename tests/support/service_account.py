"""The files and variables by which a client in a pod finds the API server, with a token of its service account."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubernetes.config import incluster_config

from dljob_operator.engine import kube


def mount(
    monkeypatch: pytest.MonkeyPatch, folder: Path, token: str, address: tuple[str, int], authority: Path | None = None
) -> Path:
    """Write ``token`` to a file in ``folder`` and return its path; ``address`` is the host and port of the server.

    ``authority`` is its certificate. Without one the file exists and holds none: the server speaks no TLS.
    """
    file = folder / "token"
    file.write_text(token)
    if authority is None:
        authority = folder / "ca.crt"
        authority.write_text("none")
    monkeypatch.setattr(kube, "_SERVICE_ACCOUNT", file)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(file))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", address[0])
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address[1]))
    return file
