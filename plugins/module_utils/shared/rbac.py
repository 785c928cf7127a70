"""Explains a permission error of the API server with the RBAC rule that grants the missing permission."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

# the quotes may be escaped, where a client's exception contains the raw response
_DENIED = re.compile(r'cannot (\w+) resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)\\*"')


# what an account may not give to others, because it lacks it itself
_NOT_HELD = re.compile(
    r"\{APIGroups:\[([^]]*)\], Resources:\[([^]]*)\], (?:ResourceNames:\[[^]]*\], )?Verbs:\[([^]]*)\]\}"
)
_NAMES = re.compile(r"ResourceNames:\[[^]]*\], ")
_QUOTED = re.compile(r'\\*"([^"\\]*)\\*"')

_Right = tuple[str, str, str]
"""verb, resource, group"""


def _missing(text: str) -> tuple[_Right, ...]:
    """The permissions whose lack ``text`` reports, each once."""
    given = (map(_QUOTED.findall, found) for found in _NOT_HELD.findall(text))
    not_held = [
        (verb, resource, group)
        for groups, resources, verbs in given
        for group, resource, verb in itertools.product(groups, resources, verbs)
    ]
    return tuple(dict.fromkeys([*_DENIED.findall(text), *not_held]))


def explain_denial(text: str) -> str:
    """``text`` with the RBAC rule for each missing permission that it names.

    The names of the objects for which an account may not give a permission are left out: a job has up to thousands.
    """
    rules = [
        f'{{apiGroups: ["{group}"], resources: [{resource}], verbs: [{verb}]}}'
        for verb, resource, group in _missing(text)
    ]
    return f"{_NAMES.sub('', text)}; add to the operator's role: {', '.join(rules)}" if rules else text


def missing_permissions(texts: Sequence[str]) -> tuple[str, ...]:
    """Those of ``texts`` that are about a missing permission, explained, for the operator's administrator.

    Each permission is listed once, however many pods of a job it concerns.
    """
    first: dict[tuple[_Right, ...], str] = {}
    for text in texts:
        denied = _missing(text)
        if denied:
            first.setdefault(denied, explain_denial(text))
    return tuple(first.values())
