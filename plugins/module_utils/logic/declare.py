"""From the data that a role declares to a :class:`Framework`, with errors that tell the role's author what to mend."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.cluster import PLACEHOLDERS, placeholders
from ansible_collections.dljob.operator.plugins.module_utils.logic.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values import framework as f
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import GRPC_SERVER_FILE
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_DISTRIBUTED, MODE_LOCAL
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

_KEYS = frozenset(
    {
        *("name", "kinds", "container", "replica_types", "chief", "succeeds_by", "modes"),
        *("environment", "validation", "dialects", "dashboard"),
    }
)
_CHOICES: Mapping[str, Sequence[str]] = {
    "form": f.FORMS,
    "names": (f.NAMES_RUNTIME_ID, f.NAMES_JOB),
    "status": (f.STATUS_V1ALPHA1, f.STATUS_V1),
    "fails_by": (f.FAILS_BY_CHIEF, f.FAILS_BY_ANY),
    "environment_in": ("named", "all"),
    "dynamic_succeeds_by": ("", f.SUCCEEDS_BY_ANY),
}
_STANDARD_TEXTS = ("image", "config_map", "mount_path", "volume", "image_field", "flag", "file_setting")
Read = Callable[[str], str]
"""From the name of a file that the role brings along to its text."""
_CODES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")


def _no_files(name: str) -> str:
    raise InvalidFramework(f"there is nobody to read the file {name!r}")


def framework(
    declared: Mapping[str, Any],
    environment: f.Environment | None = None,
    validation: f.Validation | None = None,
    read: Read = _no_files,
) -> f.Framework:
    """Build the framework; raises :class:`InvalidFramework`.

    ``declared`` is the role's data, see the documentation of ``dljob.operator.reconcile``. ``environment`` and
    ``validation`` are the filters that it names, already looked up and taken out of it; without an environment the
    declared mapping of variables, if any, is filled in. ``read`` gives the texts of the files that it names.
    """
    _known("the framework", declared, _KEYS)
    if declared.get("validation"):
        raise InvalidFramework(f"validation must be the full name of a filter, not {declared['validation']!r}")
    for key in ("name", "container", "replica_types", "dialects"):
        if not declared.get(key):
            raise InvalidFramework(f"the framework lacks {key!r}")
    bounds = _mapping("replica_types", declared["replica_types"])
    types = tuple(_replica_type(name, _mapping(f"replica_types.{name}", b or {})) for name, b in bounds.items())
    names = [t.name for t in types]
    chief = _texts("chief", declared.get("chief") or names[:1])
    for name in chief:
        _choice("chief", name, names)
    dialects = declared["dialects"]
    if not isinstance(dialects, (list, tuple)):
        raise InvalidFramework("dialects must be a list")
    return f.Framework(
        name=declared["name"],
        kinds=_texts("kinds", declared.get("kinds") or ()),
        container=declared["container"],
        replica_types=types,
        chief=chief,
        succeeds_by=_choice(
            "succeeds_by", declared.get("succeeds_by", f.SUCCEEDS_BY_CHIEF), (f.SUCCEEDS_BY_CHIEF, f.SUCCEEDS_BY_ALL)
        ),
        modes=_modes(_mapping("modes", declared.get("modes") or {})),
        dialects=tuple(
            _dialect(_mapping(f"dialects[{n}]", d), f"dialects[{n}]", names, read) for n, d in enumerate(dialects)
        ),
        dashboard=_dashboard(_mapping("dashboard", declared["dashboard"]), read) if declared.get("dashboard") else None,
        environment=environment or _declared_environment(_mapping("environment", declared.get("environment") or {})),
        **({"validation": validation} if validation else {}),
    )


def _replica_type(name: str, bounds: Mapping[str, Any]) -> f.ReplicaType:
    where = f"replica_types.{name}"
    _known(where, bounds, ("minimum", "maximum", "serves"))
    least, most = bounds.get("minimum", 0), bounds.get("maximum")
    for key, value in (("minimum", least), ("maximum", most)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InvalidFramework(f"{where}.{key}: {value!r} is no number of replicas")
    if most is not None and least > most:
        raise InvalidFramework(f"{where}: the minimum {least} is above the maximum {most}")
    if not isinstance(bounds.get("serves", False), bool):
        raise InvalidFramework(f"{where}.serves: {bounds['serves']!r} is neither true nor false")
    return f.ReplicaType(name, least, most, bounds.get("serves", False))


def _modes(declared: Mapping[str, Any]) -> Mapping[str, str]:
    for spelling, mode in declared.items():
        _choice(f"modes.{spelling}", mode, (MODE_LOCAL, MODE_DISTRIBUTED))
    return {MODE_LOCAL: MODE_LOCAL, MODE_DISTRIBUTED: MODE_DISTRIBUTED, **declared}


def _dialect(declared: Mapping[str, Any], where: str, types: Sequence[str], read: Read) -> f.Dialect:
    _known(where, declared, [field.name for field in fields(f.Dialect)])
    for key in ("groups", "form", "replicas_fields"):
        if not declared.get(key):
            raise InvalidFramework(f"{where} lacks {key!r}")
    values = dict(declared)
    for key, choices in _CHOICES.items():
        if key in values:
            _choice(f"{where}.{key}", values[key], choices)
    for key in (
        "groups",
        "replicas_fields",
        "port_fields",
        "types",
        "required",
        "runtime_id_fields",
        "spec_fields",
        "dynamic_settings",
    ):
        if key in values:
            values[key] = _texts(f"{where}.{key}", values[key])
    if not values.get("runtime_id_fields", True):
        raise InvalidFramework(f"{where}.runtime_id_fields is empty: messages need a name for it")
    standard = _mapping(f"{where}.standard", values.get("standard") or {})
    for key in ("types", "required", "standard"):
        for name in values.get(key) or ():
            _choice(f"{where}.{key}", name, types)
    values["standard"] = {
        name: _standard(_mapping(f"{where}.standard.{name}", program), f"{where}.standard.{name}", read)
        for name, program in standard.items()
    }
    if "exit_codes" in values:
        values["exit_codes"] = _exit_codes(_mapping(f"{where}.exit_codes", values["exit_codes"]), where)
    for key in ("success_policies", "dynamic"):
        values[key] = _mapping(f"{where}.{key}", values.get(key) or {})
        for name, type_ in values[key].items():
            _choice(f"{where}.{key}.{name}", type_, types)
    values["labels"] = _mapping(f"{where}.labels", values.get("labels") or {})
    for name, text in values["labels"].items():
        _check_placeholders(f"{where}.labels.{name}", text, PLACEHOLDERS | {"role"})
    return f.Dialect(**values)


def _standard(declared: Mapping[str, Any], where: str, read: Read) -> f.Standard:
    _known(where, declared, [field.name for field in fields(f.Standard)])
    for key in ("image", "config_map", "files", "mount_path", "volume"):
        if not declared.get(key):
            raise InvalidFramework(f"{where} lacks {key!r}")
    command = _texts(f"{where}.command", declared.get("command") or ())
    for text in command:
        _check_placeholders(f"{where}.command", text, PLACEHOLDERS | {"cluster_spec"})
    _check_placeholders(f"{where}.config_map", declared["config_map"], ("job", "runtime_id"))
    files = _mapping(f"{where}.files", declared["files"])
    if declared.get("file_setting"):
        _choice(f"{where}.file_setting", declared["file_setting"], (GRPC_SERVER_FILE,))
        if len(files) != 1:
            raise InvalidFramework(f"{where}.file_setting is for a program of one file, and this has {len(files)}")
    return f.Standard(
        **{key: str(declared[key]) for key in _STANDARD_TEXTS if key in declared},
        command=command,
        files={name: read(str(file)) for name, file in files.items()},
    )


def _dashboard(declared: Mapping[str, Any], read: Read) -> f.Dashboard:
    _known("dashboard", declared, [field.name for field in fields(f.Dashboard)])
    for key in ("spec_field", "name", "image", "command", "port"):
        if not declared.get(key):
            raise InvalidFramework(f"dashboard lacks {key!r}")
    command = _texts("dashboard.command", declared["command"])
    for key, text, names in (
        ("name", declared["name"], ("job", "runtime_id")),
        *(("command", text, ("job", "runtime_id", "log_dir", "program")) for text in command),
    ):
        _check_placeholders(f"dashboard.{key}", text, names)
    program = read(str(declared["program"])) if declared.get("program") else ""
    return f.Dashboard(**{**declared, "command": command, "program": program})


def _exit_codes(declared: Mapping[str, Any], where: str) -> f.ExitCodes:
    """``{"retryable": [130, "137-138"], "oom_retryable": false}``."""
    _known(f"{where}.exit_codes", declared, [field.name for field in fields(f.ExitCodes)])
    codes: set[int] = set()
    for item in declared.get("retryable") or ():
        match = _CODES.fullmatch(str(item))
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= 255:
            raise InvalidFramework(f"{where}.exit_codes.retryable: {item!r} is neither a code nor a range like 128-255")
        codes.update(range(first, last + 1))
    return f.ExitCodes(frozenset(codes), bool(declared.get("oom_retryable", False)))


def _declared_environment(variables: Mapping[str, Any]) -> f.Environment:
    """An environment that needs no computing: fixed texts with placeholders."""
    for name, text in variables.items():
        _check_placeholders(f"environment.{name}", text, PLACEHOLDERS)

    def environment(cluster: Mapping[str, Any]) -> Mapping[str, str]:
        values = placeholders(cluster)
        return {name: fill(str(text), values) for name, text in variables.items()}

    return environment


def _check_placeholders(where: str, text: object, known: Iterable[str]) -> None:
    """Now, and not when the first job comes."""
    try:
        fill(str(text), dict.fromkeys(known, ""))
    except InvalidFramework as e:
        raise InvalidFramework(f"{where}: {e}") from None


def _known(where: str, declared: Mapping[str, Any], keys: Iterable[str]) -> None:
    unknown = sorted(set(declared).difference(keys))
    if unknown:
        raise InvalidFramework(f"unknown key {unknown[0]!r} in {where}; there are: {', '.join(sorted(keys))}")


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidFramework(f"{where} must be a mapping, not {value!r}")
    return value


def _texts(where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise InvalidFramework(f"{where} must be a list of texts, not {value!r}")
    return tuple(value)


def _choice(where: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidFramework(f"{where}: {value!r} is none of {', '.join(choices)}")
    return str(value)
