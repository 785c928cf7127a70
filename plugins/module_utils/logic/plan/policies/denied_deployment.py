"""Why a Deployment that the job owns, such as TensorBoard's, has no pods.

Its controller reports the denial in a condition only. The training goes on without these pods.
"""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import refusal
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


def reason(observed: Observed) -> str:
    """The Deployment and why its pods are denied, of the first such one by name; "" where there is none."""
    denied = sorted((key[1], found.denied) for key, found in observed.owned_objects.items() if found.denied)
    return next((f"Deployment {name}: {refusal.without_pod_name(text, many=True)}" for name, text in denied), "")
