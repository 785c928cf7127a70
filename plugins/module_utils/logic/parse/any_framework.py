"""The kind DLJob: a job of any declared framework, which ``spec.framework`` names.

Such a job has the plan of the framework's own kind. This module turns the framework's newest API flavor into one for
DLJobs, and a DLJob's spec into one of that flavor. The name of the framework is a key among those that the operator has
loaded, nothing else: it becomes neither a path nor a template.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import KIND_ANY
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    FIRST_CONTAINER,
    LAYOUT_MAP,
    NAMES_JOB,
    STATUS_V1,
    SUCCEEDS_BY_TARGET,
    ApiFlavor,
    Framework,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob

GROUP = "dljob.operator"
VERSION = "v1"
KIND = KIND_ANY
LABEL_FRAMEWORK = "dljob.operator/framework"
CONTAINER_FIELDS = ("image", "command", "args", "env", "resources")
"""Of a replica type in its short form, fields of the framework's container."""
ENTRY_FIELDS = ("count", "restartPolicy", *CONTAINER_FIELDS, "template", "groups")
GROUP_FIELDS = ("name", "count", *CONTAINER_FIELDS, "template")
MANAGERS = ("kubeflow.org/training-operator", "kubeflow.org/mpi-operator")
"""The operators whose name in ``runPolicy.managedBy`` means this one, whatever the framework."""
COMMON_FIELDS = ("framework", "replicas", "options", "runPolicy", "schedulerName", "runtimeId")
"""Of the spec."""

Resource = Mapping[str, Any]


def is_any(resource: Resource) -> bool:
    """Whether ``resource`` is a DLJob."""
    return str(resource.get("apiVersion")).partition("/")[0] == GROUP and resource.get("kind") == KIND


def declared_for_any(declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The declaration of a framework that may lack a kind of its own, and so the API groups of its flavor."""
    kind = {"group": GROUP, "kind": KIND, "versions": [VERSION]}
    return declared if declared.get("kinds") else {**declared, "kinds": [kind]}


def adapt(framework: Framework) -> Framework:
    """The framework with the only flavor that its DLJobs have, from its newest one."""
    newest = framework.flavors[-1]
    flavor = dataclasses.replace(
        newest,
        groups=(GROUP,),
        version="",
        replicas_layout=LAYOUT_MAP,
        replicas_fields=("replicas",),
        runtime_id_fields=("runtimeId",),
        names=NAMES_JOB,
        status=STATUS_V1,
        managers=MANAGERS,
        labels={**newest.labels, LABEL_FRAMEWORK: framework.name},
    )
    return dataclasses.replace(framework, kinds=(KIND,), flavors=(flavor,))


def option_names(framework: Framework) -> list[str]:
    """The fields of ``spec.options``: those that the spec of the framework's own kind has."""
    flavor: ApiFlavor = framework.flavors[-1]
    names = {*flavor.spec_fields, *flavor.object_fields}
    if flavor.elastic:
        names.add(flavor.elastic.field)
    if flavor.success_policies:
        names.add("successPolicy")
    if framework.succeeds_by == SUCCEEDS_BY_TARGET:
        names.add("terminationPolicy")
    if len(framework.modes) > _MODES_OF_ALL:
        names.add("jobMode")
    return sorted(names.difference(COMMON_FIELDS))


_MODES_OF_ALL = 2
"""How many modes a framework has that declares none."""


def choose(resource: Resource, frameworks: Mapping[str, Framework]) -> Framework:
    """The framework of a DLJob, one of the adapted ``frameworks`` by name; raises :class:`InvalidJob`."""
    name = as_mapping(resource.get("spec")).get("framework")
    if not isinstance(name, str) or name not in frameworks:
        raise InvalidJob(
            f"spec.framework: {name!r} is no framework of this operator; it has {', '.join(sorted(frameworks))}"
        )
    return frameworks[name]


def parse_any(resource: Resource, framework: Framework) -> DLJob:
    """Parse a DLJob of the adapted ``framework``; raises :class:`InvalidJob`."""
    spec = as_mapping(resource.get("spec"))
    errors: list[str] = []
    for name in sorted(str(name) for name in spec if name not in COMMON_FIELDS):
        errors.append(f"spec.{name} is unknown: use {', '.join(COMMON_FIELDS)}, and spec.options for {framework.name}")
    options = _options(spec.get("options"), framework, errors)
    replicas = spec.get("replicas")
    if not isinstance(replicas, Mapping):
        errors.append("spec.replicas must be a map of replica types")
        replicas = {}
    entries = {
        str(type_): _entry(entry, f"spec.replicas.{type_}", framework, errors) for type_, entry in replicas.items()
    }
    if errors:
        raise InvalidJob(*errors)
    kept = {name: spec[name] for name in ("runPolicy", "schedulerName", "runtimeId") if name in spec}
    try:
        return parse_job({**resource, "spec": {**options, **kept, "replicas": entries}}, framework)
    except InvalidJob as e:
        raise InvalidJob(*_in_own_words(e.problems, options)) from None


def _options(options: Any, framework: Framework, errors: list[str]) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        errors.append("spec.options must be a map")
        return {}
    known = option_names(framework)
    for name in sorted(str(name) for name in options if name not in known):
        has = f"it has {', '.join(known)}" if known else "it has none"
        errors.append(f"spec.options.{name} is no option of {framework.name}: {has}")
    return {name: value for name, value in options.items() if name in known}


def _entry(entry: Any, path: str, framework: Framework, errors: list[str]) -> dict[str, Any]:
    """A replica spec with a template. It is incomplete where there are errors."""
    if not isinstance(entry, Mapping):
        errors.append(f"{path} must be a map with image or template")
        return {}
    made = _counted(entry, path, ENTRY_FIELDS, framework, errors)
    if entry.get("restartPolicy") is not None:
        made["restartPolicy"] = entry["restartPolicy"]
    if entry.get("groups") is not None:
        made["groups"] = _groups(entry["groups"], f"{path}.groups", framework, errors)
    return made


def _groups(groups: Any, path: str, framework: Framework, errors: list[str]) -> Any:
    """Groups of replicas with templates; what is no group stays as it is, for the parser."""
    if not isinstance(groups, list):
        return groups
    return [
        {
            "name": group.get("name"),
            **_counted(group, f"{path}[{number}]", GROUP_FIELDS, framework, errors),
        }
        if isinstance(group, Mapping)
        else group
        for number, group in enumerate(groups)
    ]


def _counted(
    entry: Mapping[str, Any], path: str, fields: tuple[str, ...], framework: Framework, errors: list[str]
) -> dict[str, Any]:
    """The number and the template of a replica spec or of a group, which may have the short form."""
    for name in sorted(str(name) for name in entry if name not in fields):
        errors.append(f"{path}.{name} is unknown: use {', '.join(fields)}")
    made: dict[str, Any] = {"replicas": entry.get("count")}
    short = [name for name in CONTAINER_FIELDS if entry.get(name) is not None]
    if entry.get("template") is not None:
        if short:
            errors.append(f"{path} has template and {', '.join(short)}: move these into the template's container")
        return {**made, "template": entry["template"]}
    if "image" not in short:
        errors.append(f"{path} has neither image nor template: give one of them")
    errors.extend(_malformed(entry, path))
    name = framework.name if framework.container == FIRST_CONTAINER else framework.container
    container = {"name": name, **{name: entry[name] for name in short}}
    return {**made, "template": {"spec": {"containers": [container]}}}


def _malformed(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    image, resources, env = entry.get("image"), entry.get("resources"), entry.get("env")
    if image is not None and (not isinstance(image, str) or not image):
        yield f"{path}.image must be the name of an image, not {image!r}"
    for name in ("command", "args"):
        words = entry.get(name)
        if words is not None and not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
            yield f"{path}.{name} must be a list of strings: put numbers and true or false in quotes"
    if env is not None and not (
        isinstance(env, list) and all(isinstance(one, Mapping) and one.get("name") for one in env)
    ):
        yield f"{path}.env must be a list of variables, each with a name"
    if resources is not None and not isinstance(resources, Mapping):
        yield f"{path}.resources must be a map with requests and limits"


_COUNT = re.compile(r"(spec\.replicas\.[^\s.:]+?(?:\.groups\[\d+\])?)\.replicas\b")


def _in_own_words(problems: tuple[str, ...] | list[str], options: Mapping[str, Any]) -> list[str]:
    """The errors of the framework's flavor with the names of the fields of a DLJob."""
    found = [_COUNT.sub(r"\1.count", text) for text in problems]
    for name in options:
        found = [re.sub(rf"\bspec\.{re.escape(name)}\b", lambda m: f"spec.options.{m[0][5:]}", text) for text in found]
    return found
