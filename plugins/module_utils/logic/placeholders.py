"""``{index}`` and the like in what a role declares: plain substitution, never a template that a job could bring in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

_PLACEHOLDER = re.compile(r"\{([a-z0-9_]+)\}")


def fill(text: str, values: Mapping[str, object]) -> str:
    """``text`` with each ``{name}`` replaced; an unknown name is the role author's mistake and says what there is."""

    def value(match: re.Match[str]) -> str:
        try:
            return str(values[match.group(1)])
        except KeyError:
            known = ", ".join(sorted(values))
            raise InvalidFramework(f"unknown placeholder {match.group(0)} in {text!r}; there are: {known}") from None

    return _PLACEHOLDER.sub(value, text)
