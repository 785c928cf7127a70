"""Applies the job that is given as play variables. Documentation: plugins/modules/apply_job.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.dljob.operator.plugins.module_utils.api.apply import Applied, apply
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import connect
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

ARGUMENTS: dict[str, dict[str, Any]] = {
    "watches_file": {"type": "path", "required": True},
    "namespace": {"type": "str", "default": "default"},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}
"""A test compares them with the documentation."""

_PARTS = ("apiVersion", "kind", "metadata", "spec")


class ActionModule(ActionBase):
    """Reads the raw play variables, so that Ansible evaluates no template in them."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._task.args = to_builtin(self._task.args)
        _, arguments = self.validate_argument_spec(ARGUMENTS)
        resource = _job(task_vars or {}, arguments["namespace"] or ARGUMENTS["namespace"]["default"])
        role = _role(Path(arguments["watches_file"]), resource)
        try:
            with connect(arguments["kubeconfig"], arguments["context"]) as api:
                applied = apply(api, resource, self._task.check_mode)
        except ApiError as e:
            name = resource["metadata"]["name"]
            raise AnsibleActionFail(f"{resource['kind']} {name}: {e.message}") from e
        result.update(changed=applied.changed, resource=_without_managed_fields(applied.after), role=role)
        if self._task.diff:
            result["diff"] = _diff(applied)
        return result


def _job(task_vars: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    missing = [part for part in _PARTS if part not in task_vars]
    if missing:
        raise AnsibleActionFail(
            f"there is no job: the variable {missing[0]!r} is not set. Give the manifest with -e @job.yaml "
            "(one document per file)"
        )
    resource = {part: to_builtin(task_vars[part]) for part in _PARTS}
    metadata = resource["metadata"]
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise AnsibleActionFail("metadata.name: the job needs a name")
    metadata.setdefault("namespace", namespace)
    return resource


def _role(watches_file: Path, resource: Mapping[str, Any]) -> str:
    """The role of this kind in watches.yaml. The version may differ: watches.yaml names only one of the served ones."""
    group, kind = str(resource["apiVersion"]).partition("/")[0], resource["kind"]
    watches = yaml.safe_load(watches_file.read_text(encoding="utf-8")) or []
    for watch in watches:
        if (watch.get("group"), watch.get("kind")) == (group, kind) and watch.get("role"):
            return str(watch["role"])
    known = ", ".join(sorted({f"{w.get('kind')}.{w.get('group')}" for w in watches}))
    raise AnsibleActionFail(f"{watches_file} has no role for {kind}.{group}; it has: {known}")


def _without_managed_fields(resource: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in resource["metadata"].items() if k != "managedFields"}
    return {**resource, "metadata": metadata}


def _diff(applied: Applied) -> dict[str, str]:
    after = applied.after
    name = f"{after['kind']} {after['metadata']['name']}"
    return {
        "before_header": name,
        "after_header": name,
        "before": "" if applied.before is None else _yaml(applied.before),
        "after": _yaml(after),
    }


def _yaml(resource: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(to_builtin(_without_managed_fields(resource)), sort_keys=True, allow_unicode=True))
