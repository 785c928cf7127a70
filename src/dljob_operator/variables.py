"""Build the extra variables of a role from an object and its watch entry, as ansible-operator does.

Extra variables override all others. Two kinds of spec keys are therefore no variables of their own: `ansible_*`, with
which a user who may create jobs could choose the operator's interpreter or connection, and `dljob_*`, which the engine
reserves. The variable `_<group>_<kind>` still holds the whole object with these keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import BATCH_VAR

from dljob_operator.snake import keys_to_snake
from dljob_operator.watches.model import GVK, Watch

RESERVED = ("ansible_", "dljob_")
"""Prefixes of the keys of a spec that become no variables."""


@dataclass(frozen=True)
class RunVariables:
    """Extra variables by name, and the names whose strings must never be templated."""

    values: Mapping[str, Any]
    unsafe: frozenset[str]


def for_object(watch: Watch, resource: Mapping[str, Any], *, finalizing: bool = False) -> RunVariables:
    """Return the variables of a run for one object. `finalizing` adds the finalizer's variables, which take precedence.

    A spec that is no mapping is only part of the whole object, as with ansible-operator.
    """
    metadata = resource.get("metadata", {})
    spec = resource.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    shown = keys_to_snake(spec) if watch.snake_case_parameters else spec
    name = object_variable(watch.gvk)
    from_object = {key: value for key, value in shown.items() if not key.startswith(RESERVED)}
    from_object[name] = resource
    from_object[f"{name}_spec"] = spec
    values = {
        **from_object,
        "ansible_operator_meta": {"name": metadata.get("name"), "namespace": metadata.get("namespace", "")},
    }
    return _with_fixed(watch, values, from_object, finalizing)


def for_batch(watch: Watch, resources: Sequence[Mapping[str, Any]]) -> RunVariables:
    """Return the variables of one run for several objects of the same kind: `dljob_batch` is the list of them."""
    batch = {BATCH_VAR: list(resources)}
    return _with_fixed(watch, batch, batch, False)


def object_variable(gvk: GVK) -> str:
    """Return the variable that holds the whole object: `_kubeflow_org_mxjob` for kubeflow.org's MXJob."""
    return re.sub(r"[.-]", "_", f"_{gvk.group}_{gvk.kind.lower()}")


def _with_fixed(
    watch: Watch, values: Mapping[str, Any], from_object: Mapping[str, Any], finalizing: bool
) -> RunVariables:
    """Add the variables of the watches file. Its author may write templates, so they are never marked unsafe."""
    fixed = dict(watch.vars)
    if finalizing and watch.finalizer is not None:
        fixed.update(watch.finalizer.vars)
    unsafe = frozenset(from_object).difference(fixed) if watch.mark_unsafe else frozenset()
    return RunVariables({**values, **fixed}, unsafe)
