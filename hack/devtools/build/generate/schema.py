"""The schema of a kind: its replicas, the fields and rules that follow from the declaration, and the declared ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.declaration import Kind
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import NAME_LIMIT
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import LAYOUT_MAP, NAMES_JOB

from devtools.build.generate import any_framework
from devtools.build.generate.entries import pod_names
from devtools.build.generate.layouts import LAYOUTS, TEXTS, WHOLE, Depth, Layout
from devtools.build.generate.model import Flavor, Framework, Own
from devtools.build.generate.openapi import Rule, Schema, listed, record, rule
from devtools.build.generate.options import (
    OPTION_RULES,
    aliases,
    elastic_rule,
    mode_rule,
    options,
    runtime_id_fields,
)
from devtools.build.generate.spelling import spelled
from devtools.build.generate.status import job
from devtools.build.generate.template import SHALLOW, UNKNOWN

_DEEP = 2
"""Levels that reach the fields of a container's variables, ports and security context, and the sources of volumes."""
_PART = re.compile(r"\{([A-Za-z]\w*)\}")
"""A part of a declared CEL rule, by its name."""


def schema(framework: Framework, kind: Kind, version: str) -> Schema:
    """The schema of a version of a kind."""
    if kind.group == any_framework.GROUP:
        return any_framework.schema(framework)
    every = framework.flavors_of(kind)
    _check_versions(kind, every)
    flavors = framework.flavors_of(kind, version)
    layouts = _layouts(framework, kind, flavors, version)
    if flavors[0].is_bare:
        ((_, bare),) = layouts
        return job(framework.description, spelled(bare.schema()), list(_name_rules(layouts)))
    spec = record(
        "The training program and its replicas.",
        {
            **{layout.field: layout.schema() for _, layout in layouts},
            # those of other versions too, which a write through this one must not drop
            **options(framework, every),
            **_with_run_policy(options(framework, flavors), flavors, version),
            **framework.own.fields,
            **{name: field for flavor in every for name, field in flavor.own.fields.items()},
        },
        required=[layouts[0][1].field] if len(layouts) == 1 else [],
        rules=list(_spec_rules(framework, flavors, layouts)),
    )
    if _is_early(kind, flavors, version):
        spec = spelled(spec)
    return job(framework.description, spec, list(_name_rules(layouts)), has_versions=len(every) > len(flavors))


def _is_early(kind: Kind, flavors: Sequence[Flavor], version: str) -> bool:
    """Whether jobs of that version are those of an operator before training-operator v1."""
    maps = [flavor for flavor in flavors if flavor.api.replicas_layout == LAYOUT_MAP]
    return not maps or (len(maps) < len(flavors) and len(kind.versions) > 1 and "alpha" in version)


def _with_run_policy(fields: dict[str, Schema], flavors: Sequence[Flavor], version: str) -> dict[str, Schema]:
    """``fields`` with an empty runPolicy as its default, where the clients of training-operator's v1 read the jobs.

    There the field is required, and its Python client cannot read a job without it.
    """
    if version != "v1" or all(flavor.api.replicas_layout != LAYOUT_MAP for flavor in flavors):
        return fields
    return {**fields, "runPolicy": {**fields["runPolicy"], "default": {}}}


def _check_versions(kind: Kind, flavors: Sequence[Flavor]) -> None:
    for version in (flavor.api.version for flavor in flavors if flavor.api.version):
        if version not in kind.versions:
            raise InvalidFramework(f"kinds: {kind.name} of {kind.group} is not served as {version}: add the version")


Layouts = Sequence[tuple[Flavor, Layout]]
"""The fields that may hold the replicas of a kind's jobs, with their flavors."""


def _layouts(framework: Framework, kind: Kind, flavors: Sequence[Flavor], version: str) -> Layouts:
    fields = [(flavor, field) for flavor in flavors for field in flavor.api.replicas_fields]
    names = [field for _, field in fields]
    if not names:
        raise InvalidFramework(f"kinds: {kind.name} of {kind.group} has no flavor: name its group in one")
    if len(names) > len(set(names)):
        raise InvalidFramework(
            f"kinds: the flavors of {kind.name} of {kind.group} share a field of replicas: rename it"
        )
    if "" in names and len(names) > 1:
        raise InvalidFramework(f"kinds: {kind.name} of {kind.group} has a spec that is a list, and another flavor")
    alone = len(names) == 1
    return [
        (
            flavor,
            LAYOUTS[flavor.api.replicas_layout](
                framework,
                flavor,
                field,
                () if alone else (f"!has(self.{field})",),
                _depth(kind, flavors, flavor, version),
            ),
        )
        for flavor, field in fields
    ]


def _depth(kind: Kind, flavors: Sequence[Flavor], flavor: Flavor, version: str) -> Depth:
    """How deep the schema of that version knows the fields of a layout's pod templates.

    Two layouts in two versions are too large for an annotation, in which ``kubectl apply`` keeps a definition. So each
    version knows all fields of its own layout, the map of v1 or the older one, and only the upper ones of the other,
    of whose groups it knows those alone that rules use.
    """
    maps = {one.api.replicas_layout == LAYOUT_MAP for one in flavors}
    if len(maps) == 1 or len(kind.versions) == 1:
        return WHOLE
    is_own = (flavor.api.replicas_layout == LAYOUT_MAP) == ("alpha" not in version)
    return Depth(groups=_DEEP) if is_own else Depth(SHALLOW, UNKNOWN)


def _spec_rules(framework: Framework, flavors: Sequence[Flavor], layouts: Layouts) -> Iterator[Rule]:
    if len(layouts) > 1:
        yield _one_of(layouts)
    for names, fields in _restricted(flavors):
        for name in names:
            yield _only_with(name, fields)
    if any(flavor.modes != flavors[0].modes for flavor in flavors):
        for flavor, layout in layouts:
            yield mode_rule(flavor, layout.field)
    for _, layout in layouts:
        yield from layout.rules()
    yield from _declared_rules(framework, flavors, layouts)
    yield from aliases(runtime_id_fields(flavors))
    for flavor in flavors:
        if flavor.api.elastic:
            yield elastic_rule(flavor.api.elastic)
    yield from OPTION_RULES


def _one_of(layouts: Layouts) -> Rule:
    given = ", ".join(f"has(self.{layout.field})" for _, layout in layouts)
    texts = {flavor.api.replicas_layout: TEXTS[flavor.api.replicas_layout] for flavor, _ in layouts}
    names = [
        f"{layout.field} ({texts[flavor.api.replicas_layout]})" if len(texts) > 1 else layout.field
        for flavor, layout in layouts
    ]
    return rule(
        f"[{given}].filter(given, given).size() == 1",
        message=f"exactly one of {listed(names, 'and')} is required: add or remove one",
        field=f".{layouts[0][1].field}",
    )


def _restricted(flavors: Sequence[Flavor]) -> Iterator[tuple[list[str], list[str]]]:
    """Names of fields that not all flavors have, with the fields of replicas of the flavors that have them."""
    named = [{*flavor.own.fields, *(["successPolicy"] if flavor.api.success_policies else [])} for flavor in flavors]
    for name in sorted(set().union(*named)):
        having = [flavor for flavor, names in zip(flavors, named, strict=True) if name in names]
        if len(having) < len(flavors):
            yield [name], [field for flavor in having for field in flavor.api.replicas_fields]


def _only_with(name: str, fields: Sequence[str]) -> Rule:
    replicas = listed(fields, "or")
    return rule(
        " || ".join(f"has(self.{field})" for field in fields),
        unless=[f"!has(self.{name})"],
        message=f"{name} is supported only with {replicas}: remove it, or move the replicas to {replicas}",
        field=f".{name}",
    )


def _declared_rules(framework: Framework, flavors: Sequence[Flavor], layouts: Layouts) -> Iterator[Rule]:
    single = len(framework.flavors) == len({flavor.group for flavor in framework.flavors}) and len(layouts) == 1
    common = dict(framework.own.expressions)
    yield from _rules(framework.own, {**common, **(_counts(*layouts[0]) if single else {})}, "")
    for flavor, layout in layouts:
        parts = {**_counts(flavor, layout), **common, **flavor.own.expressions}
        yield from _rules(flavor.own, parts, layout.field if len(layouts) > 1 else "")


def _counts(flavor: Flavor, layout: Layout) -> dict[str, str]:
    return {type_.name: layout.counts(type_.name) for type_ in flavor.types}


def _rules(own: Own, parts: Mapping[str, str], present: str) -> Iterator[Rule]:
    """The declared rules with their parts filled in.

    ``present`` is the field of the spec without which they do not apply; "" where they always do. Parts may name other
    parts. Raises :class:`InvalidFramework` for an unknown one.
    """
    for declared in own.rules:
        made: dict[str, Any] = {
            key: _fill(value, parts) if key in ("rule", "messageExpression") else value
            for key, value in declared.items()
        }
        yield {**made, "rule": f"!has(self.{present}) || ({made['rule']})"} if present else made


def _fill(text: str, parts: Mapping[str, str], depth: int = 0) -> str:
    def part(match: re.Match[str]) -> str:
        if match[1] not in parts:
            raise InvalidFramework(
                f"rules: unknown part {match[0]} in {text!r}; there are: {', '.join(sorted(parts)) or 'none here'}"
            )
        if depth > len(parts):
            raise InvalidFramework(f"expressions: {match[1]} contains itself")
        return _fill(parts[match[1]], parts, depth + 1)

    return _PART.sub(part, text)


def _name_rules(layouts: Layouts) -> Iterator[Rule]:
    """Rules on the job's name, whose length pod names and labels limit."""
    named = [layout for flavor, layout in layouts if flavor.api.names == NAMES_JOB]
    labelled = [
        layout for flavor, layout in layouts if flavor.api.names != NAMES_JOB and "{job}" in flavor.api.labels.values()
    ]
    if labelled:
        yield _fits_label([f"has(self.spec.{layout.field})" for _, layout in layouts if layout not in labelled])
    for layout in named:
        unless = [f"!has(self.spec.{layout.field})"] if len(layouts) > 1 else []
        yield from pod_names(layout.longest(), layout.pod_name(), unless=unless, empty=layout.empty())


def _fits_label(unless: Sequence[str]) -> Rule:
    return rule(
        f"self.metadata.name.size() <= {NAME_LIMIT}",
        unless=unless,
        computed=f"'has %d characters, and a label value of its pods has at most {NAME_LIMIT}: shorten it'"
        ".format([self.metadata.name.size()])",
        field=".metadata.name",
    )
