"""Parses a job of any API flavor into a :class:`DLJob`.

The parser checks everything again that the CRD's schema already checks, because not every job has passed that schema
(``ansible-playbook`` in check mode, CRDs of another operator).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import (
    managers,
    pod_defaults,
    replica_groups,
    requested_services,
    run_policy,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import (
    MAX_PORT,
    MAX_REPLICAS,
    Bounds,
    Parsing,
    integer,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.flavors import (
    errors_of_versions,
    flavor_of,
    holds,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.template import container_names, named_port
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.unknown_fields import unknown_fields
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.validate import validation_errors
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import host_port
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_DISTRIBUTED, MODE_LOCAL
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    HOST_PORT_JOB,
    LAYOUT_LIST,
    LAYOUT_MAP,
    SUCCEEDS_BY_ALL,
    SUCCEEDS_BY_TARGET,
    ApiFlavor,
    Framework,
    ReplicaType,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup, SuccessTarget

Entry = tuple[str, str, Any]
"""(path for messages, the user's spelling of the type, the replica spec)."""


def parse_job(resource: Mapping[str, Any], framework: Framework) -> DLJob:
    """Parse ``resource``, a job as the API server returns it.

    Raises :class:`InvalidJob` with as many errors as can be found at once.
    """
    flavor = flavor_of(resource, framework)
    kind = _kind(resource, framework)
    metadata = as_mapping(resource.get("metadata"))
    spec = resource.get("spec")
    options = as_mapping(spec)
    errors = list(errors_of_versions(options, flavor, framework))
    uid = str(metadata.get("uid") or "")
    parsing = Parsing(options, flavor, framework, errors, uid or str(metadata.get("name") or ""))

    entries = list(_entries(spec, flavor, framework, errors))
    errors.extend(unknown_fields(resource, entries, flavor))
    groups = tuple(
        group for path, spelling, entry in entries if (group := _group(path, spelling, entry, parsing)) is not None
    )
    target = _success_target(options, groups, framework, errors)
    mode = _mode(options, framework, errors)
    services, asks_for_services = requested_services.requested(metadata.get("annotations"), flavor, framework, errors)
    job = DLJob(
        api_version=_api_version(resource, flavor),
        kind=kind,
        namespace=str(metadata.get("namespace") or "default"),
        name=str(metadata.get("name") or ""),
        uid=uid,
        generation=integer(metadata.get("generation"), "metadata.generation", Bounds(0, 0, 2**63 - 1), errors),
        runtime_id=_runtime_id(options, flavor, uid, errors),
        mode=mode,
        groups=groups,
        success_target=target,
        run_policy=run_policy.parse(parsing, groups, metadata),
        flavor=flavor,
        options=_passed(options, flavor.spec_fields),
        object_options=_passed(options, flavor.object_fields),
        status=as_mapping(resource.get("status")),
        is_queued=managers.is_queued(metadata),
        succeeds_by=_succeeds_by(options, target, flavor, framework, errors),
        services=services,
        asks_for_services=asks_for_services,
        elastic_type=_elastic_type(options, flavor, errors),
    )
    return _validated(job, framework, errors)


def _kind(resource: Mapping[str, Any], framework: Framework) -> str:
    kind = str(resource.get("kind") or "")
    if framework.kinds and kind not in framework.kinds:
        kinds = ", ".join(framework.kinds)
        raise InvalidJob(f"kind: {kind!r} is not a kind of {framework.name}; its kinds are: {kinds}")
    return kind


def _validated(job: DLJob, framework: Framework, errors: list[str]) -> DLJob:
    """``job`` with the defaults of its templates, unless it has ``errors``, or its fields do not fit together."""
    if job.total > framework.max_replicas:
        errors.append(
            f"the job has {job.total} replicas, and the operator allows {framework.max_replicas}: lower replicas, or "
            "ask the administrator for a larger --max-replicas-per-job"
        )
    if not errors:
        job = pod_defaults.complete(job, framework)
        errors.extend(validation_errors(requested_services.validated(job), framework))
    if errors:
        raise InvalidJob(*errors)
    return job


def _api_version(resource: Mapping[str, Any], flavor: ApiFlavor) -> str:
    """The API version of the job: the one in which it was created, where that decides what it means."""
    given = str(resource.get("apiVersion"))
    return f"{given.partition('/')[0]}/{flavor.version}" if flavor.version else given


def _passed(holder: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Those of ``fields`` that hooks get, unvalidated."""
    return {name: holder[name] for name in fields if name in holder}


def _entries(spec: Any, flavor: ApiFlavor, framework: Framework, errors: list[str]) -> Iterator[Entry]:
    field = next((n for n in flavor.replicas_fields if holds(spec, n)), None)
    if field is None:
        first = flavor.replicas_fields[0]
        errors.append(
            f"spec.{first} is missing: list the job's replicas there" if first else "spec: a list of replicas is needed"
        )
        return
    path = f"spec.{field}" if field else "spec"
    replicas = spec[field] if field else spec
    if flavor.replicas_layout == LAYOUT_LIST:
        if not isinstance(replicas, list):
            errors.append(f"{path} must be a list of replica specs")
            return
        for number, entry in enumerate(replicas):
            spelling = entry.get(flavor.type_field) if isinstance(entry, Mapping) else None
            default = framework.replica_types[0].name if len(framework.replica_types) == 1 else ""
            yield f"{path}[{number}]", str(spelling or default), entry
    elif not isinstance(replicas, Mapping):
        errors.append(
            f"{path} must be a map"
            + (" of replica type to replica spec" if flavor.replicas_layout == LAYOUT_MAP else "")
        )
    elif flavor.replicas_layout == LAYOUT_MAP:
        for spelling, entry in replicas.items():
            yield f"{path}.{spelling}", str(spelling), entry
    else:
        yield path, flavor.types[0] if flavor.types else framework.replica_types[0].name, replicas


def _group(path: str, spelling: str, entry: Any, parsing: Parsing) -> ReplicaGroup | None:
    flavor, framework, errors = parsing.flavor, parsing.framework, parsing.errors
    if not isinstance(entry, Mapping):
        errors.append(f"{path} must be a map with replicas and template")
        return None
    names = [t.name for t in framework.replica_types if t.name in (flavor.types or (t.name,))]
    known = ", ".join(name.upper() if flavor.replicas_layout == LAYOUT_LIST else name for name in names)
    where = f"{path}.{flavor.type_field}" if flavor.replicas_layout == LAYOUT_LIST else path
    if not spelling:
        errors.append(f"{where} is missing: it must be one of {known}")
        return None
    type_ = framework.type_named(spelling)
    if type_ is None or type_.name not in names:
        errors.append(f"{where}: {spelling!r} is not a replica type of {framework.name}; it must be one of {known}")
        return None
    replicas = integer(entry.get("replicas"), f"{path}.replicas", Bounds(1, 0, MAX_REPLICAS), errors)
    has_own = flavor.host_port == HOST_PORT_JOB and host_port.is_on_host(entry)
    port = host_port.of_job(parsing.uid) if has_own else flavor.default_port
    for name in flavor.port_fields:
        if name in entry:
            port = integer(entry[name], f"{path}.{name}", Bounds(port, 1, MAX_PORT), errors)
    template = entry.get("template")
    if template is None and type_.name in flavor.template_optional:
        template = {}
    if not isinstance(template, Mapping):
        errors.append(f"{path}.template is missing: describe the pod there")
        return None
    port = named_port(template, f"{path}.template", port, parsing)
    policy = _restart_policy(path, entry, template, parsing, type_)
    group = ReplicaGroup(
        type=type_.name,
        replicas=replicas,
        template=template,
        restart_policy=policy,
        port=port,
        path=path,
        containers=container_names(template),
        fields=_passed(entry, flavor.replica_fields.get(type_.name, ())),
        batch_job=type_.name in flavor.batch_jobs,
        indexed=type_.indexed,
        resizable=type_.resizable,
    )
    groups = replica_groups.parse(entry.get("groups"), group, parsing) if _has_groups(flavor) else ()
    return dataclasses.replace(group, groups=groups)


def _has_groups(flavor: ApiFlavor) -> bool:
    """Whether the replica specs of the flavor may have groups: the schemas of the others have no such field."""
    return flavor.replicas_layout == LAYOUT_MAP


def _restart_policy(
    path: str, entry: Mapping[str, Any], template: Mapping[str, Any], parsing: Parsing, type_: ReplicaType
) -> str:
    """v1 has it in the entries of its map and ignores the template's, like training-operator; older flavors use it."""
    flavor = parsing.flavor
    default = flavor.default_policy_of(type_.name)
    own = entry.get("restartPolicy")
    if flavor.replicas_layout != LAYOUT_MAP and own is None:
        own = as_mapping(template.get("spec")).get("restartPolicy")
    policy = own or default
    if policy not in flavor.restart_policies:
        parsing.errors.append(f"{path}.restartPolicy: {policy!r} is none of {', '.join(flavor.restart_policies)}")
        return default
    return str(policy)


def _runtime_id(options: Mapping[str, Any], flavor: ApiFlavor, uid: str, errors: list[str]) -> str:
    given = {name: str(options[name]) for name in flavor.runtime_id_fields if options.get(name)}
    if len(set(given.values())) > 1:
        errors.append(f"spec has {' and '.join(given)}, which are spellings of one field and differ: keep one of them")
    return next(iter(given.values()), naming.runtime_id(uid))


def _mode(options: Mapping[str, Any], framework: Framework, errors: list[str]) -> str:
    spelling = options.get("jobMode")
    if spelling in (None, ""):
        return MODE_DISTRIBUTED
    mode = framework.modes.get(str(spelling))
    if mode is None:
        errors.append(f"spec.jobMode: {spelling!r} is none of {', '.join(framework.modes)}")
        return MODE_DISTRIBUTED
    return mode


def _success_target(
    options: Mapping[str, Any], groups: tuple[ReplicaGroup, ...], framework: Framework, errors: list[str]
) -> SuccessTarget:
    present = {g.type for g in groups if g.replicas > 0}
    default = next((c for c in framework.success_target if c in present), framework.success_target[0])
    # of a framework that needs all replicas no one decides
    decides = framework.succeeds_by == SUCCEEDS_BY_TARGET
    wanted = as_mapping(as_mapping(options.get("terminationPolicy")).get("chief")) if decides else {}
    if wanted:
        spelling = str(wanted.get("replicaName") or default)
        where = "spec.terminationPolicy.chief.replicaIndex"
        index = integer(wanted.get("replicaIndex"), where, Bounds(0, 0, MAX_REPLICAS), errors)
        group = next((g for g in groups if g.type.casefold() == spelling.casefold()), None)
        if group is None or index >= group.replicas:
            errors.append(f"spec.terminationPolicy.chief: the job has no replica {spelling} {index}")
            return SuccessTarget(default)
        return SuccessTarget(group.type, index)
    return SuccessTarget(default)


def _succeeds_by(
    options: Mapping[str, Any],
    target: SuccessTarget,
    flavor: ApiFlavor,
    framework: Framework,
    errors: list[str],
) -> str:
    """v1's successPolicy asks for all replicas of a type. It has no effect where another type is the success target.

    The flavor's setting for elastic replicas takes precedence wherever the job has the elastic field.
    """
    elastic = flavor.elastic
    requested = elastic is not None and options.get(elastic.field) not in (None, False)
    if elastic and requested and elastic.succeeds_by and target.type == elastic.type:
        return elastic.succeeds_by
    wanted = options.get("successPolicy")
    if not flavor.success_policies or wanted in (None, ""):
        return SUCCEEDS_BY_ALL if _together(options, target, flavor, framework) else framework.succeeds_by
    if not isinstance(wanted, str) or wanted not in flavor.success_policies:
        errors.append(f"spec.successPolicy: {wanted!r} is none of {', '.join(flavor.success_policies)}, or empty")
        return framework.succeeds_by
    return SUCCEEDS_BY_ALL if flavor.success_policies[wanted] == target.type else framework.succeeds_by


def _together(options: Mapping[str, Any], target: SuccessTarget, flavor: ApiFlavor, framework: Framework) -> bool:
    """Whether all replicas of the target's type must succeed. In a local job they must anyway."""
    is_local = framework.modes.get(str(options.get("jobMode"))) == MODE_LOCAL
    chosen = as_mapping(options.get("terminationPolicy")).get("chief")
    return target.type in flavor.succeeds_together and not is_local and not chosen


def _elastic_type(options: Mapping[str, Any], flavor: ApiFlavor, errors: list[str]) -> str:
    elastic = flavor.elastic
    given = options.get(elastic.field) if elastic else None
    if elastic is None or given is None:
        return ""
    if elastic.when_any:
        if not isinstance(given, Mapping):
            errors.append(f"spec.{elastic.field} must be a map, not {given!r}")
            return ""
        return elastic.type if any(given.get(setting) is not None for setting in elastic.when_any) else ""
    if not isinstance(given, bool):
        errors.append(f"spec.{elastic.field} must be true or false, not {given!r}")
        return ""
    return elastic.type if given else ""
