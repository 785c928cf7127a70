"""Converts manifests between API flavors: a pure function of the manifest, the target and the declared frameworks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.convert import source, targets, trainjob
from ansible_collections.dljob.operator.plugins.module_utils.logic.convert.model import (
    TARGETS,
    TO_DLJOB,
    TO_V1,
    Conversion,
    Declared,
    Manifest,
    NotConvertible,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import declaration, loader


def declared(declaration_of_a_role: Mapping[str, Any]) -> Declared:
    """The framework of a role's declaration. Its hooks are not needed: no environment is computed."""
    relevant = {key: value for key, value in declaration_of_a_role.items() if key != "hooks"}
    framework = loader.framework(relevant, read=lambda name: "")
    return Declared(framework, declaration.kinds(declaration_of_a_role))


def is_job(manifest: Manifest, frameworks: Iterable[Declared]) -> bool:
    """Whether ``manifest`` is a job, even if of a kind that cannot be converted."""
    return source.is_job(manifest, frameworks)


def convert(manifest: Manifest, to: str, frameworks: Iterable[Declared]) -> Conversion:
    """Convert the job ``manifest`` to one of :data:`.model.TARGETS`.

    Raises :class:`NotConvertible` where it is no valid job of these frameworks, or the target has no such jobs.
    """
    if to not in TARGETS:
        raise NotConvertible(f"{to!r} is none of {', '.join(TARGETS)}")
    of = source.declared_of(manifest, frameworks)
    if of is None:
        what = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
        raise NotConvertible(f"kind: {what} is no job that can be converted")
    job = source.read(manifest, of)
    if to == TO_V1:
        return targets.to_v1(job)
    return targets.to_dljob(job) if to == TO_DLJOB else trainjob.to_trainjob(job)
