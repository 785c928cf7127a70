"""One entry of watches.yaml, read and checked key by key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import DECLARABLE, unknown_kinds

from dljob_operator.durations import parse_duration
from dljob_operator.watches.lookup import ProcessState, role_candidates
from dljob_operator.watches.model import GVK, Finalizer, Watch

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_VERSION = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class EntryReader:
    """Parses one entry and collects its errors."""

    _KEYS = (
        *("group", "version", "kind", "role", "playbook", "vars", "finalizer", "reconcilePeriod"),
        *("selector", "blacklist", "maxRunnerArtifacts", "manageStatus", "watchDependentResources"),
        *("watchClusterScopedResources", "watchAnnotationsChanges", "snakeCaseParameters", "markUnsafe"),
    )

    def __init__(self, number: int, entry: object, process: ProcessState, beside: Path) -> None:
        self.problems: list[str] = []
        self.title = f"entry {number}"
        self._entry = entry
        self._process = process
        self._beside = beside

    def read(self) -> Watch | None:
        """Return the entry, or None with `problems` filled."""
        if not isinstance(self._entry, dict):
            known = ", ".join(self._KEYS[:4])
            self._problem("", f"must be a mapping of {known} ..., is {_type_name(self._entry)}")
            return None
        entry: dict[Any, Any] = self._entry
        if entry.get("kind"):
            version = "/".join(str(entry[key]) for key in ("group", "version") if entry.get(key))
            self.title += f" ({version} {entry['kind']})"
        self._reject_unknown(entry, self._KEYS, "")
        gvk = self._gvk(entry, "", core_allowed=True)
        role, playbook = self._role_or_playbook(entry, "", required=True)
        watch = Watch(
            gvk=gvk,
            role=role,
            playbook=playbook,
            vars=self._mapping(entry, "vars"),
            finalizer=self._finalizer(entry.get("finalizer")),
            reconcile_period=self._duration(entry, "reconcilePeriod"),
            selector=self._selector(self._mapping(entry, "selector")),
            blacklist=self._blacklist(entry.get("blacklist")),
            max_runner_artifacts=self._non_negative(entry, "maxRunnerArtifacts", 20),
            manage_status=self._flag(entry, "manageStatus", True),
            watch_dependent_resources=self._flag(entry, "watchDependentResources", True),
            watch_cluster_scoped_resources=self._flag(entry, "watchClusterScopedResources", False),
            watch_annotations_changes=self._flag(entry, "watchAnnotationsChanges", False),
            snake_case_parameters=self._flag(entry, "snakeCaseParameters", True),
            mark_unsafe=self._flag(entry, "markUnsafe", False),
        )
        self._check_owns(watch.vars.get("dljob_owns"))
        return None if self.problems else watch

    def _check_owns(self, kinds: object) -> None:
        if kinds is None:
            return
        if not isinstance(kinds, list):
            self._problem("vars.dljob_owns", f"must be a list of kinds, is {_type_name(kinds)}")
            return
        for kind in unknown_kinds(str(kind) for kind in kinds):
            self._problem(
                "vars.dljob_owns", f"{kind!r} is no kind that a job may own; known are {', '.join(DECLARABLE)}"
            )

    def _problem(self, key: str, text: str) -> None:
        self.problems.append(f"{self.title}: {key}: {text}" if key else f"{self.title}: {text}")

    def _reject_unknown(self, mapping: Mapping[Any, Any], known: Sequence[str], prefix: str) -> None:
        for key in mapping:
            if key in known:
                continue
            near = difflib.get_close_matches(str(key).lower(), [name.lower() for name in known], n=1)
            meant = next((name for name in known if near and name.lower() == near[0]), None)
            advice = f"did you mean {meant!r}?" if meant else f"known are {', '.join(known)}"
            self._problem(f"{prefix}{key}", f"unknown key; {advice}")

    def _gvk(self, mapping: Mapping[str, Any], prefix: str, *, core_allowed: bool) -> GVK:
        values = {}
        for key, pattern, example in (
            ("group", _GROUP, "kubeflow.org"),
            ("version", _VERSION, "v1"),
            ("kind", _KIND, "MXJob"),
        ):
            value = mapping.get(key, "")
            if value in ("", None):
                if key != "group" or not core_allowed:
                    self._problem(prefix + key, f"is missing; set it, for example to {example!r}")
                value = ""
            elif not isinstance(value, str) or not pattern.fullmatch(value):
                self._problem(prefix + key, f"{value!r} is no API {key}; an example is {example!r}")
                value = ""
            values[key] = value
        return GVK(**values)

    def _role_or_playbook(
        self, mapping: Mapping[str, Any], prefix: str, *, required: bool
    ) -> tuple[Path | None, Path | None]:
        given = [key for key in ("role", "playbook") if mapping.get(key) not in ("", None)]
        if len(given) == 2:
            both = f"{mapping['role']!r} or {mapping['playbook']!r}"
            self._problem(f"{prefix}role", f"role and playbook are both given; keep one ({both})")
            return None, None
        if not given:
            if required:
                self._problem(f"{prefix}role", "is missing; name a role, or a playbook under 'playbook'")
            return None, None
        key = given[0]
        value = mapping[key]
        if not isinstance(value, str):
            self._problem(prefix + key, f"must be a name or a path, is {_type_name(value)}")
            return None, None
        if key == "playbook":
            return None, self._playbook(value, prefix + key)
        return self._role(value, prefix + key), None

    def _role(self, name: str, key: str) -> Path | None:
        tried = []
        for candidate in role_candidates(name, self._process, self._beside):
            if candidate.is_dir():
                return candidate
            if str(candidate) not in tried:
                tried.append(str(candidate))
        fix = "set ANSIBLE_ROLES_PATH, or ANSIBLE_COLLECTIONS_PATH for a role in a collection"
        self._problem(key, f"the role {name!r} was not found; {fix}. Searched {', '.join(tried)}")
        return None

    def _playbook(self, name: str, key: str) -> Path | None:
        for base in (self._process.cwd, self._beside):
            candidate = base / name
            if candidate.is_file():
                return candidate
        self._problem(key, f"the playbook {name!r} was not found in {self._process.cwd} or {self._beside}")
        return None

    def _finalizer(self, value: object) -> Finalizer | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            known = "name, role, playbook and vars"
            self._problem("finalizer", f"must be a mapping of {known}, is {_type_name(value)}")
            return None
        self._reject_unknown(value, ("name", "role", "playbook", "vars"), "finalizer.")
        name = value.get("name")
        if not isinstance(name, str) or "/" not in name:
            example = "dljob.operator/cleanup"
            self._problem("finalizer.name", f"must be a qualified name such as {example!r}, is {name!r}")
            name = ""
        role, playbook = self._role_or_playbook(value, "finalizer.", required=False)
        variables = self._mapping(value, "vars", "finalizer.")
        if not (value.get("role") or value.get("playbook") or variables):
            self._problem("finalizer", "has no effect; add a role, a playbook or vars")
        return Finalizer(name, role, playbook, variables)

    def _mapping(self, mapping: Mapping[str, Any], key: str, prefix: str = "") -> Mapping[str, Any]:
        value = mapping.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            self._problem(prefix + key, f"must be a mapping with names as keys, is {_type_name(value)}")
            return {}
        return value

    def _duration(self, mapping: Mapping[str, Any], key: str) -> float:
        value = mapping.get(key)
        if value is None:
            return 0.0
        try:
            return parse_duration(value)
        except ValueError as error:
            self._problem(key, str(error))
            return 0.0

    def _flag(self, mapping: Mapping[str, Any], key: str, default: bool) -> bool:
        value = mapping.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._problem(key, f"must be true or false, is {value!r}")
            return default
        return value

    def _non_negative(self, mapping: Mapping[str, Any], key: str, default: int) -> int:
        value = mapping.get(key)
        if value in (None, 0):
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self._problem(key, f"must be a whole number of zero or more, is {value!r}")
            return default
        return value

    def _blacklist(self, value: object) -> tuple[GVK, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self._problem("blacklist", f"must be a list of group, version and kind, is {_type_name(value)}")
            return ()
        kinds = []
        for index, item in enumerate(value):
            self._reject_unknown(item, ("group", "version", "kind"), f"blacklist[{index}].")
            kinds.append(self._gvk(item, f"blacklist[{index}].", core_allowed=True))
        return tuple(kinds)

    def _selector(self, value: Mapping[str, Any]) -> str:
        self._reject_unknown(value, ("matchLabels", "matchExpressions"), "selector.")
        labels = self._mapping(value, "matchLabels", "selector.")
        terms = [f"{name}={label}" for name, label in labels.items()]
        for index, expression in enumerate(value.get("matchExpressions") or []):
            key = f"selector.matchExpressions[{index}]"
            if not isinstance(expression, dict) or not isinstance(expression.get("key"), str):
                self._problem(key, "must be a mapping of key, operator and values")
                continue
            self._reject_unknown(expression, ("key", "operator", "values"), f"{key}.")
            terms.append(self._term(expression, key))
        return ",".join(terms)

    def _term(self, expression: Mapping[str, Any], key: str) -> str:
        name, operator, values = expression["key"], expression.get("operator"), expression.get("values") or []
        if operator not in _OPERATORS:
            self._problem(f"{key}.operator", f"{operator!r} is none of {', '.join(_OPERATORS)}")
            return ""
        if operator in ("Exists", "DoesNotExist"):
            return name if operator == "Exists" else f"!{name}"
        if not isinstance(values, list) or not values:
            self._problem(f"{key}.values", f"must be a list of at least one value for {operator}")
            return ""
        operator_word = "in" if operator == "In" else "notin"
        return f"{name} {operator_word} ({','.join(map(str, values))})"


def _type_name(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", type(None): "empty"}
    return names.get(type(value), f"a {type(value).__name__}")
