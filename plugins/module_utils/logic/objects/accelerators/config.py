"""Parses tf-operator's ``controller_config_file.yaml``. Each error names the path in the file and the fix.

Shape::

    accelerators:
      grpcServerFilePath: /path/in/the/operator's/image.py     # or beside accelerators
      alpha.kubernetes.io/nvidia-gpu:
        volumes: [{name: nvidia-libs, mountPath: /usr/local/nvidia/lib64, hostPath: /usr/lib/nvidia}]
        envVars: [{name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}]

The parser rejects values that the API server would reject in a pod: that would fail the job, whose spec is valid.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.accelerator_limits import is_accelerator
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    CONFIG_KEYS,
    GRPC_SERVER_FILE,
    Accelerator,
    HostVolume,
    OperatorConfig,
    Variable,
)

_VOLUME_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_VARIABLE_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_RESOURCE_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_TOP = ("accelerators", GRPC_SERVER_FILE, "tfImage")
T = TypeVar("T")


class _ConfigError(ValueError):
    """An error of the configuration: one sentence with the path in the file and the fix."""


def text_of(data: Mapping[str, Any]) -> tuple[str, str]:
    """(key, text) of the ConfigMap's configuration file; raises ValueError where it is ambiguous.

    ``kubectl create configmap --from-file`` names the key after the file, so a single key may have any name.
    """
    for key in CONFIG_KEYS:
        if key in data:
            return key, str(data[key])
    if len(data) == 1:
        ((key, text),) = data.items()
        return key, str(text)
    raise ValueError(f"data.{CONFIG_KEYS[0]} is missing: put the accelerators there, in YAML")


def inner_of(document: Any) -> Mapping[str, Any] | None:
    """The data of a ConfigMap manifest that is itself a file in the ConfigMap, as tf-operator's documents create it."""
    if isinstance(document, Mapping) and document.get("kind") == "ConfigMap":
        data = document.get("data")
        return data if isinstance(data, Mapping) else {}
    return None


def read(document: Any, where: str) -> OperatorConfig:
    """The configuration in ``document``. Errors do not raise; they are in ``problems``, prefixed with ``where``.

    An error in the entry of one resource does not affect the others.
    """
    accelerators: dict[str, Accelerator] = {}
    problems: dict[str, str] = {}
    try:
        top = _known(_mapping({} if document is None else document, "the file"), "the file", _TOP)
        entries = dict(_mapping(top.get("accelerators") or {}, "accelerators"))
        files = _files(top, entries)
        for name in entries:
            if not (isinstance(name, str) and is_accelerator(name) and _RESOURCE_NAME.fullmatch(name)):
                raise _ConfigError(
                    f"accelerators: {reprlib.repr(name)} is not a resource: use the name that pods request, "
                    "e.g. nvidia.com/gpu"
                )
    except _ConfigError as e:
        return OperatorConfig(problems={"": f"{where}: {e}"})
    for name, entry in entries.items():
        try:
            accelerators[name] = _accelerator(entry, f"accelerators[{name}]")
        except _ConfigError as e:
            problems[name] = f"{where}: {e}"
    return OperatorConfig(accelerators, files, problems)


def _files(top: Mapping[str, Any], entries: dict[str, Any]) -> Mapping[str, str]:
    """tf-operator's documents put the setting among the resources, its program reads it beside them. Both are valid."""
    inner = entries.pop(GRPC_SERVER_FILE, None)
    path = inner if inner is not None else top.get(GRPC_SERVER_FILE)
    if path is None:
        return {}
    where = f"accelerators.{GRPC_SERVER_FILE}" if inner is not None else GRPC_SERVER_FILE
    return {GRPC_SERVER_FILE: _path(path, where)}


def _accelerator(entry: Any, where: str) -> Accelerator:
    known = _known(_mapping({} if entry is None else entry, where), where, ("volumes", "envVars"))
    volumes = _each(known.get("volumes"), f"{where}.volumes", _volume)
    variables = _each(known.get("envVars"), f"{where}.envVars", _variable)
    _differ((v.mount_path.rstrip("/") for v in volumes), f"{where}.volumes", "mountPath")
    _differ((name for name, _ in sorted({(v.name, v.host_path) for v in volumes})), f"{where}.volumes", "name")
    _differ((v.name for v in variables), f"{where}.envVars", "name")
    return Accelerator(volumes, variables)


def _volume(entry: Mapping[str, Any], where: str) -> HostVolume:
    _known(entry, where, ("name", "mountPath", "hostPath"))
    name = _text(entry, "name", where)
    if not _VOLUME_NAME.fullmatch(name):
        raise _ConfigError(
            f"{where}.name: {reprlib.repr(name)} is not a valid volume name: use up to 63 of a-z, 0-9 and '-'"
        )
    mount_path = _path(_text(entry, "mountPath", where), f"{where}.mountPath")
    if ":" in mount_path:
        raise _ConfigError(f"{where}.mountPath: {mount_path!r} has a ':', which Kubernetes does not allow: remove it")
    return HostVolume(name, mount_path, _path(_text(entry, "hostPath", where), f"{where}.hostPath"))


def _variable(entry: Mapping[str, Any], where: str) -> Variable:
    _known(entry, where, ("name", "value"))
    name = _text(entry, "name", where)
    if not _VARIABLE_NAME.fullmatch(name):
        raise _ConfigError(
            f"{where}.name: {reprlib.repr(name)} is not a valid name of an environment variable: "
            "use letters, digits, '-', '.' and '_', and no digit first"
        )
    value = entry.get("value", "")
    if not isinstance(value, str):
        raise _ConfigError(f"{where}.value: {reprlib.repr(value)} is not a string: put it in quotes")
    return Variable(name, value)


def _each(listed: Any, where: str, make: Callable[[Mapping[str, Any], str], T]) -> tuple[T, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise _ConfigError(f"{where} must be a list: start each item with '-'")
    return tuple(make(_mapping(item, f"{where}[{n}]"), f"{where}[{n}]") for n, item in enumerate(listed))


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _ConfigError(f"{where} must be a map, not {reprlib.repr(value)}")
    return value


def _known(entry: Mapping[str, Any], where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    unknown = next((key for key in entry if key not in keys), None)
    if unknown is not None:
        raise _ConfigError(f"{where} has the unknown key {reprlib.repr(unknown)}: the known keys are {', '.join(keys)}")
    return entry


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if value is None or value == "":
        raise _ConfigError(f"{where}.{key} is missing: add it")
    if not isinstance(value, str):
        raise _ConfigError(f"{where}.{key}: {reprlib.repr(value)} is not a string: put it in quotes")
    return value


def _path(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.startswith("/") or ".." in value.split("/"):
        raise _ConfigError(f"{where}: {reprlib.repr(value)} is not an absolute path without '..': start it with '/'")
    return value


def _differ(names: Iterable[str], where: str, key: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise _ConfigError(f"{where}: the {key} {reprlib.repr(name)} occurs twice: use each {key} once")
        seen.add(name)
