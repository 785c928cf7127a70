"""Reads a job of any API flavor in the terms of kubeflow.org/v1."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.convert.model import (
    Declared,
    Group,
    Manifest,
    NotConvertible,
    Replicas,
    Report,
    SourceJob,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.flavors import flavor_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    MODE_LOCAL,
    RESTART_ALWAYS,
    RESTART_EXIT_CODE,
    RESTART_ON_FAILURE,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    FAILS_BY_TARGET,
    LAYOUT_LIST,
    LAYOUT_MAP,
    ApiFlavor,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate, ReplicaGroup

_METADATA = ("name", "generateName", "namespace", "labels", "annotations")
_CLEAN = ("cleanPodPolicy", "cleanupPodPolicy")


def declared_of(manifest: Manifest, every: Iterable[Declared]) -> Declared | None:
    """The framework whose kind ``manifest`` is, ``None`` for any other object. DLJobs are no source."""
    group, _, version = str(manifest.get("apiVersion") or "").partition("/")
    wanted = (group, manifest.get("kind"))
    return next((d for d in every if any((k.group, k.name) == wanted and version in k.versions for k in d.kinds)), None)


def is_job(manifest: Manifest, every: Iterable[Declared]) -> bool:
    """Whether ``manifest`` is of an API group of jobs, even if of a kind that cannot be converted."""
    group = str(manifest.get("apiVersion") or "").partition("/")[0]
    return group == any_framework.GROUP or any(k.group == group for d in every for k in d.kinds)


def read(manifest: Manifest, declared: Declared) -> SourceJob:
    """Read a job; raises :class:`NotConvertible` where it is not valid."""
    report = Report()
    framework = declared.framework
    try:
        flavor = flavor_of(manifest, framework)
        if flavor.version != framework.flavors[-1].version:
            raise NotConvertible(_other_version(declared, flavor))
        job = parse_job(_without_default_programs(manifest, flavor, report), framework)
    except InvalidJob as e:
        raise NotConvertible("; ".join(e.problems)) from None
    spec = as_mapping(manifest.get("spec"))
    replicas = {group.type: _replicas(job, group, declared, report) for group in job.groups}
    metadata = as_mapping(manifest.get("metadata"))
    return SourceJob(
        declared=declared,
        metadata={name: copy.deepcopy(metadata[name]) for name in _METADATA if metadata.get(name)},
        replicas=replicas,
        options=_options(spec, flavor, declared, report),
        run_policy=_run_policy(spec, flavor, framework.flavors[-1]),
        scheduler_name=job.run_policy.scheduler_name or "",
        mode=MODE_LOCAL if job.mode == MODE_LOCAL else "",
        v1_mode=_v1_mode(job, spec),
        report=report,
    )


def _v1_mode(job: DLJob, spec: Manifest) -> str:
    spelling = str(spec.get("jobMode") or "")
    return spelling if job.mode == MODE_LOCAL and spelling != MODE_LOCAL else ""


def _without_default_programs(manifest: Manifest, flavor: ApiFlavor, report: Report) -> Manifest:
    """``manifest`` without the replicas that run a program of the operator, which only their own flavor knows."""
    if not flavor.template_optional:
        return manifest
    spec = as_mapping(manifest.get("spec"))
    optional = {name.lower() for name in flavor.template_optional}
    made = dict(spec)
    for field in flavor.replicas_fields:
        entries = spec.get(field)
        if not isinstance(entries, list):
            continue
        kept = []
        for number, entry in enumerate(entries):
            type_ = str(as_mapping(entry).get(flavor.type_field) or "").lower()
            containers = as_mapping(as_mapping(as_mapping(entry).get("template")).get("spec")).get("containers")
            if type_ in optional and (not containers or as_mapping(entry).get("IsDefaultPS")):
                report.lose(
                    f"spec.{field}[{number}]",
                    f"{type_.upper()} replicas without a container run the operator's default program, which other "
                    "flavors do not have: give them a template, and convert again",
                )
            else:
                kept.append(entry)
        made[field] = kept
    return {**manifest, "spec": made}


def _other_version(declared: Declared, flavor: ApiFlavor) -> str:
    newest = declared.framework.flavors[-1].version
    return (
        f"apiVersion: the processes of a job of {flavor.version} are started in another way than those of {newest}, "
        f"which the target has: write it as {newest} first, see docs/compatibility.md"
    )


def _replicas(job: DLJob, group: ReplicaGroup, declared: Declared, report: Report) -> Replicas:
    newest = declared.framework.flavors[-1]
    *groups, template = (_template(job, group, one, report) for one in group.templates)
    policy = group.restart_policy
    if job.flavor.fails_by == FAILS_BY_TARGET:
        policy = _policy_by_exit_code(job, group, report)
    is_read = group.port != newest.default_port or _has_port(template, newest.port_name, declared)
    if job.flavor.replicas_layout == LAYOUT_LIST and is_read:
        _name_port(template, group, declared, report)
    is_default = policy == newest.default_policy_of(group.type) and job.flavor.fails_by != FAILS_BY_TARGET
    return Replicas(
        path=group.path,
        count=group.replicas,
        restart_policy="" if is_default else policy,
        template=template,
        groups=tuple(
            Group(one.group, len(one.indexes), copied) for one, copied in zip(group.groups, groups, strict=True)
        ),
    )


def _template(job: DLJob, group: ReplicaGroup, of: PodTemplate, report: Report) -> dict[str, Any]:
    """A copy of the template without its restart policy."""
    template = copy.deepcopy(dict(of.template))
    own_policy = as_mapping(template.get("spec")).get("restartPolicy")
    if isinstance(template.get("spec"), dict):
        template["spec"].pop("restartPolicy", None)
    policy = group.restart_policy
    if job.flavor.replicas_layout == LAYOUT_MAP and own_policy is not None and own_policy != policy:
        report.note(f"{of.path}.spec.restartPolicy", f"has no effect in this flavor: {policy} applies")
    return template


def _policy_by_exit_code(job: DLJob, group: ReplicaGroup, report: Report) -> str:
    """The list layouts fail by the exit code of the success target, and always restart the other replicas."""
    if group.type != job.success_target.type:
        return RESTART_ALWAYS if group.restart_policy == RESTART_ALWAYS else RESTART_ON_FAILURE
    codes = sorted(job.flavor.exit_codes.retryable)
    also = "" if codes == list(range(128, 256)) else f" Here only {', '.join(map(str, codes))} are."
    report.note(
        group.path,
        "restartPolicy becomes ExitCode, with which exit codes from 128 on are retried, a lack of memory too."
        f"{also} A rule of runPolicy.podFailurePolicy restores what differs",
    )
    return RESTART_EXIT_CODE


def _name_port(template: dict[str, Any], group: ReplicaGroup, declared: Declared, report: Report) -> None:
    """kubeflow.org/v1 has the port as a named containerPort of the framework's container."""
    name = declared.framework.flavors[-1].port_name
    spec = as_mapping(template.get("spec"))
    if not name:
        report.lose(group.path, f"port {group.port}: the newest flavor has no field for it")
        return
    if spec.get("hostNetwork"):
        report.note(group.path, f"the containerPort {group.port} occupies that port of the node, with hostNetwork")
    for container in spec.get("containers") or ():
        if container.get("name") == declared.framework.container:
            container["ports"] = _with_port(container.get("ports") or (), name, group.port)


def _has_port(template: Mapping[str, Any], name: str, declared: Declared) -> bool:
    """Whether the framework's container has a port of the ``name``, which the list layouts do not read."""
    containers = as_mapping(template.get("spec")).get("containers") or ()
    own = [one for one in containers if one.get("name") == declared.framework.container]
    return any(port.get("name") == name for one in own for port in one.get("ports") or ())


def _with_port(ports: Sequence[Any], name: str, number: int) -> list[Any]:
    """``ports`` with one of the ``name``: the one of that number, since with hostNetwork a second one is refused, or a
    new one. Another of that name, which the list layouts do not read, loses it.
    """
    unnamed = [{key: value for key, value in one.items() if (key, value) != ("name", name)} for one in ports]
    for one in unnamed:
        if one.get("containerPort") == number and one.get("protocol", "TCP") == "TCP":
            one["name"] = name
            return unnamed
    return [*unnamed, {"name": name, "containerPort": number}]


def _options(spec: Manifest, flavor: ApiFlavor, declared: Declared, report: Report) -> dict[str, Any]:
    known = any_framework.option_names(declared.framework)
    handled = {*flavor.replicas_fields, *flavor.runtime_id_fields, *_CLEAN, "runPolicy", "schedulerName", "jobMode"}
    found = {}
    for name, value in spec.items():
        if name in known and name not in handled:
            found[name] = copy.deepcopy(value)
        elif name not in handled:
            report.note(f"spec.{name}", "has no effect, and is left out")
    for name in flavor.runtime_id_fields:
        if spec.get(name) and flavor.replicas_layout == LAYOUT_LIST:
            report.lose(
                f"spec.{name}", "pods are named after the job in the target: scripts must use <job>-<type>-<index>"
            )
        elif spec.get(name):
            report.note(f"spec.{name}", "is left out: pods are named after the job")
    if "tfImage" in found and "tensorboard" not in found:
        del found["tfImage"]
        report.note("spec.tfImage", "is left out: only the operator's own programs, which the job does not run, use it")
    return found


def _run_policy(spec: Manifest, flavor: ApiFlavor, newest: ApiFlavor) -> dict[str, Any]:
    given = spec.get("runPolicy")
    policy: dict[str, Any] = copy.deepcopy(dict(given)) if isinstance(given, Mapping) else {}
    clean = policy.get("cleanPodPolicy") or next((spec[name] for name in _CLEAN if spec.get(name)), None)
    if not clean and flavor.default_clean_pod_policy != newest.default_clean_pod_policy:
        clean = flavor.default_clean_pod_policy
    return {**policy, "cleanPodPolicy": clean} if clean else policy
