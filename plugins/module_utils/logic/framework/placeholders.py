"""Substitutes placeholders such as ``{index}`` in a role's declaration, without a template engine that a job could
abuse."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

_PLACEHOLDER = re.compile(r"\{([a-z0-9_]+)\}")


def names(text: str) -> set[str]:
    """The names of the placeholders in ``text``."""
    return set(_PLACEHOLDER.findall(text))


def fill(text: str, values: Mapping[str, object]) -> str:
    """``text`` with each ``{name}`` replaced. An unknown name raises InvalidFramework, which lists the known ones."""
    name = text[1:-1]
    if name in values and text == f"{{{name}}}":  # most texts are one placeholder
        return str(values[name])
    if "{" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        try:
            return str(values[match.group(1)])
        except KeyError:
            known = ", ".join(sorted(values))
            raise InvalidFramework(f"unknown placeholder {match.group(0)} in {text!r}; there are: {known}") from None

    return _PLACEHOLDER.sub(value, text)
