"""Other spellings of the fields of the early operators, with which ``kubectl apply`` names the right one.

Those operators read jobs with Go's JSON, which ignores case. The API server does not: a field in another case is
unknown, and a client that does not validate strictly would lose it without a word. So the spellings that people write
are fields of their own, which a rule refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from devtools.build.generate.openapi import OPEN, Rule, Schema, rule
from devtools.build.generate.pod_schema import Compact

_WITHIN = {"tensorboard": "tensorBoard"}
"""Names of one word here that are two elsewhere."""
_ACRONYMS = (("^tf", "TF"), ("^mx", "MX"), ("Ps", "PS"), ("PS$", "Ps"), ("Id$", "ID"), ("ID$", "Id"), ("^nfs", "NFS"))
_LATER = ("runPolicy", "template")
"""Fields that those operators did not have, and those of Kubernetes."""


def other_spellings(name: str) -> list[str]:
    """Spellings of a field that differ in case."""
    found = [name.lower(), name[0].swapcase() + name[1:]]
    if name in _WITHIN:
        found += [_WITHIN[name], _WITHIN[name][0].upper() + _WITHIN[name][1:]]
    for one in (name, found[1]):
        found += [re.sub(pattern, to, one) for pattern, to in _ACRONYMS]
    return [one for one in dict.fromkeys(found) if one != name]


def spelled(schema: Schema) -> Schema:
    """``schema`` with the other spellings of its fields, and of those of the objects and lists in it.

    Required fields have none: the API server's own message names what is missing.
    """
    if isinstance(schema.get("items"), dict):
        return {**schema, "items": spelled(schema["items"])}
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    inner = {name: one if name in _LATER else spelled(one) for name, one in properties.items()}
    others = {
        other: name
        for name in properties
        if name not in schema.get("required", ()) and name not in _LATER
        for other in other_spellings(name)
        if other not in properties
    }
    if not others:
        return {**schema, "properties": inner} if inner else schema
    return {
        **schema,
        "properties": {**inner, **{other: _shape(properties[name]) for other, name in others.items()}},
        "x-kubernetes-validations": [*schema.get("x-kubernetes-validations", ()), _rule(others)],
    }


def _shape(schema: Mapping[str, Any]) -> Schema:
    """What of a field a rule needs to see whether it is there."""
    if schema.get("type") == "array":
        return Compact(type="array", items=_shape(schema["items"]))
    if schema.get("type") in (None, "object"):
        return Compact({"type": "object", OPEN: True})
    return Compact(type=schema["type"])


def _rule(others: Mapping[str, str]) -> Rule:
    *first, last = ((other, f"['{other}', '{name}']") for other, name in others.items())
    pairs = "".join(f"has(self.{other}) ? {pair} : " for other, pair in first) + last[1]
    return rule(
        " && ".join(f"!has(self.{other})" for other in others),
        computed=f"'%s is not known in this spelling: write %s'.format({pairs})",
    )
