"""From any dialect to one :class:`DLJob`.

The API server has already refused what the CRD's schema can say; everything is checked here again all the same, for
jobs that never met the schema (``ansible-playbook`` in check mode, a CRD of somebody else's).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import dashboard, naming, standard
from ansible_collections.dljob.operator.plugins.module_utils.logic.shapes import mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.validate import problems_of
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    CLEAN_POLICIES,
    MODE_DISTRIBUTED,
    RESTART_POLICIES,
    RESTART_SCOPE_REPLICA,
    RESTART_SCOPES,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    FORM_LIST,
    FORM_MAP,
    SUCCEEDS_BY_ALL,
    Dialect,
    Framework,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import Chief, DLJob, ReplicaGroup, RunPolicy

Entry = tuple[str, str, Any]
"""(path for messages, the user's spelling of the type, the replica spec)."""


def dialect_of(resource: Mapping[str, Any], framework: Framework) -> Dialect:
    """The dialect that ``resource`` is written in, told by its group and by which field it uses.

    By the shape and not by the version: a CRD that serves two versions of one object shows the other version's too.
    Where no field tells, the group's last dialect (its newest) is taken, so that a complaint is made in its terms.
    """
    group = str(resource.get("apiVersion", "")).partition("/")[0]
    candidates = [d for d in framework.dialects if group in d.groups]
    if not candidates:
        known = sorted({g for d in framework.dialects for g in d.groups})
        raise InvalidJob(f"apiVersion: {framework.name} knows no group {group!r}; it knows {', '.join(known)}")
    spec = resource.get("spec")
    used = {name: d for d in reversed(candidates) for name in d.replicas_fields if _holds(spec, name)}
    if len(used) > 1:
        raise InvalidJob(f"spec has {' and '.join(sorted(used))}, which say the same: keep one of them")
    return next(iter(used.values()), candidates[-1])


def _holds(spec: Any, name: str) -> bool:
    return isinstance(spec, list) if name == "" else isinstance(spec, Mapping) and name in spec


def parse_job(resource: Mapping[str, Any], framework: Framework) -> DLJob:
    """Read ``resource``, a job as the API server holds it.

    Raises :class:`InvalidJob` with every fault that can be found in one pass.
    """
    dialect = dialect_of(resource, framework)
    kind = str(resource.get("kind") or "")
    if framework.kinds and kind not in framework.kinds:
        raise InvalidJob(f"kind: {kind!r} is no job of {framework.name}; its kinds are: {', '.join(framework.kinds)}")
    metadata = mapping(resource.get("metadata"))
    spec = resource.get("spec")
    options = mapping(spec)
    faults: list[str] = []

    groups = tuple(
        group
        for path, spelling, entry in _entries(spec, dialect, framework, faults)
        if (group := _group(path, spelling, entry, options, dialect, framework, faults)) is not None
    )
    uid = str(metadata.get("uid") or "")
    chief = _chief(options, groups, framework, faults)
    mode = _mode(options, framework, faults)
    job = DLJob(
        api_version=str(resource.get("apiVersion")),
        kind=kind,
        namespace=str(metadata.get("namespace") or "default"),
        name=str(metadata.get("name") or ""),
        uid=uid,
        generation=_integer(metadata.get("generation"), 0, "metadata.generation", 0, 2**63 - 1, faults),
        runtime_id=_runtime_id(options, dialect, uid, faults),
        mode=mode,
        groups=groups,
        chief=chief,
        run_policy=_run_policy(options, dialect, faults),
        dialect=dialect,
        options={name: options[name] for name in dialect.spec_fields if name in options},
        status=mapping(resource.get("status")),
        page=dashboard.parse(options, framework, faults),
        succeeds_by=_succeeds_by(options, chief, dialect, framework, faults),
        dynamic=_dynamic(options, dialect, faults),
    )
    if not faults:
        faults.extend(problems_of(job, framework))
    if faults:
        raise InvalidJob(*faults)
    return job


def _entries(spec: Any, dialect: Dialect, framework: Framework, faults: list[str]) -> Iterator[Entry]:
    field = next((n for n in dialect.replicas_fields if _holds(spec, n)), None)
    if field is None:
        first = dialect.replicas_fields[0]
        faults.append(
            f"spec.{first} is missing: list the job's replicas there" if first else "spec: a list of replicas is needed"
        )
        return
    path = f"spec.{field}" if field else "spec"
    held = spec[field] if field else spec
    if dialect.form == FORM_LIST:
        if not isinstance(held, list):
            faults.append(f"{path} must be a list of replica specs")
            return
        for number, entry in enumerate(held):
            spelling = entry.get(dialect.type_field) if isinstance(entry, Mapping) else None
            default = framework.replica_types[0].name if len(framework.replica_types) == 1 else ""
            yield f"{path}[{number}]", str(spelling or default), entry
    elif not isinstance(held, Mapping):
        faults.append(
            f"{path} must be a map" + (" of replica type to replica spec" if dialect.form == FORM_MAP else "")
        )
    elif dialect.form == FORM_MAP:
        for spelling, entry in held.items():
            yield f"{path}.{spelling}", str(spelling), entry
    else:
        yield path, framework.replica_types[0].name, held


def _group(
    path: str,
    spelling: str,
    entry: Any,
    options: Mapping[str, Any],
    dialect: Dialect,
    framework: Framework,
    faults: list[str],
) -> ReplicaGroup | None:
    if not isinstance(entry, Mapping):
        faults.append(f"{path} must be a map with replicas and template")
        return None
    names = [t.name for t in framework.replica_types if t.name in (dialect.types or (t.name,))]
    known = ", ".join(name.upper() if dialect.form == FORM_LIST else name for name in names)
    where = f"{path}.{dialect.type_field}" if dialect.form == FORM_LIST else path
    if not spelling:
        faults.append(f"{where} is missing: it must be one of {known}")
        return None
    type_ = framework.type_named(spelling)
    if type_ is None or type_.name not in names:
        faults.append(f"{where}: {spelling!r} is no replica type of {framework.name}; it must be one of {known}")
        return None
    replicas = _integer(entry.get("replicas"), 1, f"{path}.replicas", 0, 1_000_000, faults)
    port = dialect.default_port
    for name in dialect.port_fields:
        if name in entry:
            port = _integer(entry[name], port, f"{path}.{name}", 1, 65535, faults)
    program = standard.program_of(dialect, type_.name, entry, framework.container)
    template = entry.get("template")
    if program:
        template = standard.complete(template, program, framework.container, options)
    if not isinstance(template, Mapping):
        faults.append(f"{path}.template is missing: describe the pod there")
        return None
    port = _named_port(template, framework.container, dialect.port_name, f"{path}.template", port, faults)
    policy = _restart_policy(path, entry, template, dialect, faults)
    return ReplicaGroup(type_.name, replicas, template, policy, port, path, program)


def _restart_policy(
    path: str, entry: Mapping[str, Any], template: Mapping[str, Any], dialect: Dialect, faults: list[str]
) -> str:
    """v1's map has it in its entries (the template's is overruled, as the peer does); older forms in the template."""
    own = entry.get("restartPolicy")
    if dialect.form != FORM_MAP and own is None:
        own = mapping(template.get("spec")).get("restartPolicy")
    policy = own or dialect.default_restart_policy
    if policy not in RESTART_POLICIES:
        faults.append(f"{path}.restartPolicy: {policy!r} is none of {', '.join(RESTART_POLICIES)}")
        return dialect.default_restart_policy
    return str(policy)


def _named_port(
    template: Mapping[str, Any], container: str, name: str, path: str, default: int, faults: list[str]
) -> int:
    """The port that the template itself gives the framework's container under ``name``, as v1 does it."""
    containers = mapping(template.get("spec")).get("containers")
    for candidate in containers if name and isinstance(containers, list) else ():
        ports = mapping(candidate).get("ports")
        for port in ports if mapping(candidate).get("name") == container and isinstance(ports, list) else ():
            if mapping(port).get("name") == name:
                where = f"{path}.spec.containers: containerPort {name} of {container}"
                return _integer(port.get("containerPort"), default, where, 1, 65535, faults)
    return default


def _integer(value: Any, default: int, path: str, least: int, most: int, faults: list[str]) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        faults.append(f"{path} must be a whole number, not {value!r}")
        return default
    if not least <= value <= most:
        faults.append(f"{path} is {value}: it must be between {least} and {most}")
        return default
    return value


def _text(value: Any, path: str, faults: list[str]) -> str | None:
    if value is not None and not isinstance(value, str):
        faults.append(f"{path} must be a text, not {value!r}")
        return None
    return value


def _runtime_id(options: Mapping[str, Any], dialect: Dialect, uid: str, faults: list[str]) -> str:
    given = {name: str(options[name]) for name in dialect.runtime_id_fields if options.get(name)}
    if len(set(given.values())) > 1:
        faults.append(f"spec has {' and '.join(given)}, which say the same and differ: keep one of them")
    return next(iter(given.values()), naming.runtime_id(uid))


def _mode(options: Mapping[str, Any], framework: Framework, faults: list[str]) -> str:
    spelling = options.get("jobMode")
    if spelling in (None, ""):
        return MODE_DISTRIBUTED
    mode = framework.modes.get(str(spelling))
    if mode is None:
        faults.append(f"spec.jobMode: {spelling!r} is none of {', '.join(framework.modes)}")
        return MODE_DISTRIBUTED
    return mode


def _chief(
    options: Mapping[str, Any], groups: tuple[ReplicaGroup, ...], framework: Framework, faults: list[str]
) -> Chief:
    present = {g.type for g in groups if g.replicas > 0}
    default = next((c for c in framework.chief if c in present), framework.chief[0])
    wanted = mapping(mapping(options.get("terminationPolicy")).get("chief"))
    if wanted:
        spelling = str(wanted.get("replicaName") or default)
        index = _integer(
            wanted.get("replicaIndex"), 0, "spec.terminationPolicy.chief.replicaIndex", 0, 1_000_000, faults
        )
        group = next((g for g in groups if g.type.casefold() == spelling.casefold()), None)
        if group is None or index >= group.replicas:
            faults.append(f"spec.terminationPolicy.chief: the job has no replica {spelling} {index}")
            return Chief(default)
        return Chief(group.type, index)
    return Chief(default)


def _succeeds_by(
    options: Mapping[str, Any], chief: Chief, dialect: Dialect, framework: Framework, faults: list[str]
) -> str:
    """v1's successPolicy asks for all replicas of a type. Where another type decides it means nothing, as there.

    Before it comes what the dialect says of replicas that are made for coming and going, even where these do not.
    """
    given = [type_ for name, type_ in dialect.dynamic.items() if options.get(name) not in (None, False)]
    if dialect.dynamic_succeeds_by and chief.type in given:
        return dialect.dynamic_succeeds_by
    wanted = options.get("successPolicy")
    if not dialect.success_policies or wanted in (None, ""):
        return framework.succeeds_by
    if not isinstance(wanted, str) or wanted not in dialect.success_policies:
        faults.append(f"spec.successPolicy: {wanted!r} is none of {', '.join(dialect.success_policies)}, or empty")
        return framework.succeeds_by
    return SUCCEEDS_BY_ALL if dialect.success_policies[wanted] == chief.type else framework.succeeds_by


def _dynamic(options: Mapping[str, Any], dialect: Dialect, faults: list[str]) -> str:
    for name, type_ in dialect.dynamic.items():
        given = options.get(name)
        if given is None:
            continue
        if dialect.dynamic_settings:
            if not isinstance(given, Mapping):
                faults.append(f"spec.{name} must be a map, not {given!r}")
            elif any(given.get(setting) is not None for setting in dialect.dynamic_settings):
                return type_
        elif not isinstance(given, bool):
            faults.append(f"spec.{name} must be true or false, not {given!r}")
        elif given:
            return type_
    return ""


def _run_policy(options: Mapping[str, Any], dialect: Dialect, faults: list[str]) -> RunPolicy:
    policy = options.get("runPolicy")
    path = "spec.runPolicy"
    if policy is not None and not isinstance(policy, Mapping):
        faults.append(f"{path} must be a map")
    policy = mapping(policy)
    clean = policy.get("cleanPodPolicy")
    for name in ("cleanPodPolicy", "cleanupPodPolicy"):  # v1beta's place, and seed 001's spelling
        clean = options.get(name) if clean is None else clean
    clean = dialect.default_clean_pod_policy if clean in (None, "") else clean
    if clean not in CLEAN_POLICIES:
        faults.append(f"{path}.cleanPodPolicy: {clean!r} is none of {', '.join(CLEAN_POLICIES)}")
        clean = dialect.default_clean_pod_policy
    suspend = policy.get("suspend")
    if suspend is not None and not isinstance(suspend, bool):
        faults.append(f"{path}.suspend must be true or false, not {suspend!r}")
    scheduling = mapping(policy.get("schedulingPolicy"))
    scope = policy.get("restartScope") or RESTART_SCOPE_REPLICA
    if scope not in RESTART_SCOPES:
        faults.append(f"{path}.restartScope: {scope!r} is none of {', '.join(RESTART_SCOPES)}")
        scope = RESTART_SCOPE_REPLICA

    def seconds(name: str, least: int) -> int | None:
        value = policy.get(name)
        return None if value is None else _integer(value, least, f"{path}.{name}", least, 2**31 - 1, faults)

    return RunPolicy(
        clean_pod_policy=clean,
        ttl_seconds_after_finished=seconds("ttlSecondsAfterFinished", 0),
        active_deadline_seconds=seconds("activeDeadlineSeconds", 1),
        backoff_limit=seconds("backoffLimit", 0),
        suspend=suspend is True,
        managed_by=_text(policy.get("managedBy"), f"{path}.managedBy", faults),
        scheduler_name=_text(options.get("schedulerName"), "spec.schedulerName", faults),
        priority_class=_text(scheduling.get("priorityClass"), f"{path}.schedulingPolicy.priorityClass", faults),
        restart_scope=scope,
    )
