"""Reads the nodes of pods that a plan deletes by force. No cache has them: a node's heartbeats would change it."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.force_delete_after import (
    NodeState,
    node_state,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError


def read_states(client: RestClient, names: Sequence[str]) -> dict[str, NodeState]:
    """The state of each of these nodes. One that cannot be read, for example without the permission, is not lost.

    Each is one request, by list and name: the operator has the permission to list nodes, not to get one.
    """
    states: dict[str, NodeState] = {}

    def read(name: str) -> Steps[None]:
        try:
            listed = yield ApiRequest("GET", "/api/v1/nodes", query={"fieldSelector": f"metadata.name={name}"})
        except ApiError as e:
            states[name] = NodeState(False, f"cannot be read ({e.summary})")
        else:
            states[name] = node_state(next(iter(listed.get("items") or ()), None))

    client.each(names, read)
    return states
