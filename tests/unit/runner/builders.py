"""Objects as the API server gives them, for tests."""

from __future__ import annotations

from typing import Any


def make(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    """An object of `kind` called `name`, UID `<name>-uid`, version "1", changed by `metadata`."""
    defaults = {"name": name, "namespace": "team", "uid": f"{name}-uid", "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": kind, "metadata": defaults | metadata}


def owned_by(uid: str, *, controller: bool = True) -> list[dict[str, Any]]:
    return [{"kind": "MXJob", "uid": uid, "controller": controller}]
