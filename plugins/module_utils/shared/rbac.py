"""Explains a permission error of the API server with the RBAC rule that grants the missing permission."""

from __future__ import annotations

import re
from collections.abc import Sequence

# the quotes may be escaped, where a client's exception contains the raw response
_DENIED = re.compile(r'cannot (\w+) resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)\\*"')


def explain_denial(text: str) -> str:
    """``text`` with the RBAC rule for each missing permission that it names."""
    denied = dict.fromkeys(_DENIED.findall(text))
    rules = [
        f'{{apiGroups: ["{group}"], resources: [{resource}], verbs: [{verb}]}}' for verb, resource, group in denied
    ]
    return f"{text}; add to the operator's role: {', '.join(rules)}" if rules else text


def missing_permissions(texts: Sequence[str]) -> tuple[str, ...]:
    """Those of ``texts`` that are about a missing permission, explained, for the operator's administrator.

    Each permission is listed once, however many pods of a job it concerns.
    """
    first: dict[tuple[tuple[str, str, str], ...], str] = {}
    for text in texts:
        denied = tuple(_DENIED.findall(text))
        if denied:
            first.setdefault(denied, explain_denial(text))
    return tuple(first.values())
