"""The role's own program, for replicas without a container of the framework: tf-operator's default parameter server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.cluster_spec import Cluster, placeholders
from ansible_collections.dljob.operator.plugins.module_utils.logic.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor, DefaultProgram

CLUSTER_SPEC = "cluster_spec"
"""Placeholder for the whole cluster on a command line: ``master|host:port,ps|host:port;host:port``."""


def program_of(flavor: ApiFlavor, type_: str, entry: Mapping[str, Any], container: str) -> DefaultProgram | None:
    """The role's program that the replicas of ``entry`` run, ``None`` where the job brings its own."""
    program = flavor.default_program.get(type_)
    if program is None or entry.get(program.flag) is True:
        return program
    return None if any(c.get("name") == container for c in _containers(entry.get("template"))) else program


def complete(template: Any, program: DefaultProgram, container: str, options: Mapping[str, Any]) -> Any:
    """``template`` with the container that runs ``program``. A malformed template is returned as is, for validation."""
    template = {} if template is None else template
    spec = (template.get("spec") or {}) if isinstance(template, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(spec.get("containers") or [], list):
        return template
    image = options.get(program.image_field) or program.image
    containers = [{"image": image, **c} if _is_named(c, container) else c for c in spec.get("containers") or ()]
    if not any(_is_named(c, container) for c in containers):
        containers.append({"name": container, "image": image})
    return {**template, "spec": {**spec, "containers": containers}}


def inject_program(spec: dict[str, Any], program: DefaultProgram, container: str, replica: Cluster) -> None:
    """Add to a pod's ``spec`` the program's files and the command that starts it, unless the container has one."""
    values = {**placeholders(replica), CLUSTER_SPEC: _cluster_spec(replica)}
    name = fill(program.config_map, values)
    volumes = spec.get("volumes") or []
    if all(v.get("name") != program.volume for v in volumes):
        spec["volumes"] = [*volumes, {"name": program.volume, "configMap": {"name": name}}]
    for candidate in spec["containers"]:
        if not _is_named(candidate, container):
            continue
        mounts = candidate.get("volumeMounts") or []
        if all(m.get("mountPath") != program.mount_path for m in mounts):
            candidate["volumeMounts"] = [*mounts, {"name": program.volume, "mountPath": program.mount_path}]
        if program.command and not candidate.get("command") and not candidate.get("args"):
            candidate["command"] = [fill(text, values) for text in program.command]


def _containers(template: Any) -> list[Mapping[str, Any]]:
    spec = template.get("spec") if isinstance(template, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    return [c for c in containers if isinstance(c, Mapping)] if isinstance(containers, list) else []


def _is_named(candidate: Any, container: str) -> bool:
    return isinstance(candidate, Mapping) and candidate.get("name") == container


def _cluster_spec(replica: Cluster) -> str:
    jobs = sorted((type_.lower(), members) for type_, members in replica["replicas"].items() if members)
    return ",".join(f"{type_}|" + ";".join(f"{m['host']}:{m['port']}" for m in members) for type_, members in jobs)
