"""Applies the jobs of a manifest, or of play variables. Documentation: plugins/modules/apply_job.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.dljob.operator.plugins.module_utils.api.apply import Applied, apply
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import connect
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.json_types import without_json
from ansible_collections.dljob.operator.plugins.module_utils.shared.manifest_yaml import read_objects
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

ARGUMENTS: dict[str, dict[str, Any]] = {
    "watches_file": {"type": "path", "required": True},
    "manifest": {"type": "path"},
    "namespace": {"type": "str", "default": "default"},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}
"""A test compares them with the documentation."""

_PARTS = ("apiVersion", "kind", "metadata", "spec")
NO_NAME = "metadata.name: the job needs a name"

Resource = dict[str, Any]


class ActionModule(ActionBase):
    """Reads the file, or the raw play variables, so that Ansible evaluates no template in a job."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._task.args = to_builtin(self._task.args)
        _, arguments = self.validate_argument_spec(ARGUMENTS)
        watches = _watches(Path(arguments["watches_file"]))
        if arguments["manifest"]:
            found, others = _of_manifest(Path(arguments["manifest"]), watches)
            result["warnings"] = others
        else:
            found = [_of_variables(task_vars or {}, watches, arguments["watches_file"])]
        namespace = arguments["namespace"] or ARGUMENTS["namespace"]["default"]
        applied = []
        with connect(arguments["kubeconfig"], arguments["context"]) as api:
            for resource, _ in found:
                resource["metadata"].setdefault("namespace", namespace)
                try:
                    applied.append(apply(api, resource, self._task.check_mode))
                except ApiError as e:
                    name = resource["metadata"]["name"]
                    raise AnsibleActionFail(f"{resource['kind']} {name}: {e.message}") from e
        result["changed"] = any(one.changed for one in applied)
        result["jobs"] = [
            {"resource": _without_managed_fields(one.after), "role": role}
            for one, (_, role) in zip(applied, found, strict=True)
        ]
        if len(applied) == 1:
            result |= result["jobs"][0]
        if self._task.diff:
            result["diff"] = [_diff(one) for one in applied]
        return result


def _of_manifest(file: Path, watches: Mapping[str, str]) -> tuple[list[tuple[Resource, str]], list[str]]:
    """The jobs of a file with their roles, and a sentence for each other object in it."""
    found, others = [], []
    try:
        for number, resource in read_objects(file.read_text(encoding="utf-8")):
            role = watches.get(_kind(resource))
            if role is None:
                name = _name(resource) or "without a name"
                others.append(
                    f"document {number} of {file}, {_kind(resource)} {name}, is no job: apply it with kubectl"
                )
                continue
            if not _name(resource):
                raise ValueError(f"document {number}: {NO_NAME}")
            found.append((resource, role))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise AnsibleActionFail(f"manifest: {file}: {error}") from error
    if not found:
        why = "; ".join(others) or "it is empty"
        raise AnsibleActionFail(f"manifest: {file} has no job: {why}. The kinds of jobs are {', '.join(watches)}")
    return found, others


def _of_variables(task_vars: Mapping[str, Any], watches: Mapping[str, str], watches_file: str) -> tuple[Resource, str]:
    missing = [part for part in _PARTS if part not in task_vars]
    if missing:
        raise AnsibleActionFail(
            "there is no job: give its manifest with -e manifest=job.yaml. Else, with -e @job.yaml, the variable "
            f"{missing[0]!r} is not set: such a file has one document"
        )
    resource = {part: to_builtin(task_vars[part]) for part in _PARTS}
    if not _name(resource):
        raise AnsibleActionFail(NO_NAME)
    if error := without_json(resource):
        raise AnsibleActionFail(
            f"{error}: Ansible reads YAML otherwise than kubectl; quote the value, or give the file with "
            "-e manifest=job.yaml in place of -e @job.yaml"
        )
    role = watches.get(_kind(resource))
    if role is None:
        raise AnsibleActionFail(f"{watches_file} has no role for {_kind(resource)}; it has: {', '.join(watches)}")
    return resource, role


def _name(resource: Mapping[str, Any]) -> str:
    metadata = resource.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def _kind(resource: Mapping[str, Any]) -> str:
    """The kind with its group, as kubectl writes both. watches.yaml names only one of the served versions."""
    group, slash, _ = str(resource.get("apiVersion")).partition("/")
    return f"{resource.get('kind')}.{group}" if slash else str(resource.get("kind"))


def _watches(file: Path) -> dict[str, str]:
    """The roles in watches.yaml by kind and group."""
    entries: Sequence[Mapping[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8")) or []
    found = {f"{watch.get('kind')}.{watch.get('group')}": str(watch["role"]) for watch in entries if watch.get("role")}
    return dict(sorted(found.items()))


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
