"""The body of a DELETE request, which deletes the object that the caller has seen, and no newer one of its name."""

from __future__ import annotations

from typing import Any


def delete_options(
    uid: str | None,
    propagation: str = "Background",
    *,
    version: str = "",
    force: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """DeleteOptions with ``uid`` as precondition; the API server answers 409 where another object has the name.

    ``None`` is no precondition; "" is one that no object meets. With ``version``, a resource version, it answers 409
    where the object has changed since. ``propagation`` is Background, Foreground or Orphan. ``force`` deletes a pod
    without its grace period, although its node may still run it.
    """
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    if uid is not None:
        options["preconditions"] = {"uid": uid}
    if version:
        options.setdefault("preconditions", {})["resourceVersion"] = version
    if force:
        options["gracePeriodSeconds"] = 0
    if dry_run:
        options["dryRun"] = ["All"]
    return options
