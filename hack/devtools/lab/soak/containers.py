"""Ends the containers of simulated pods: kwok starts them and lets them run for ever. Pure, apart from the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devtools.testbed.client import MERGE, Client, Refused


def ended_status(pod: Mapping[str, Any], exit_code: int) -> dict[str, Any]:
    """The status of a pod all of whose containers have exited with ``exit_code``."""
    reason = "Completed" if exit_code == 0 else "Error"
    containers = [
        {
            "name": container["name"], "image": "", "imageID": "", "ready": False, "restartCount": 0,
            "state": {"terminated": {"exitCode": exit_code, "reason": reason}},
        }
        for container in pod["spec"]["containers"]
    ]  # fmt: skip
    return {"status": {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": containers}}


def end_pod(client: Client, pod: Mapping[str, Any], exit_code: int) -> None:
    """Write the status as the kubelet would; a pod that is gone needs none."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
    try:
        # with the uid, a successor of the same name is not ended in its place
        body = {"metadata": {"uid": metadata["uid"]}, **ended_status(pod, exit_code)}
        client.request("PATCH", path, body, MERGE)
    except Refused as refusal:
        if refusal.status not in (404, 409):
            raise
