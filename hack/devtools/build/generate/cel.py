"""The CEL rules of a declaration, in which ``{name}`` stands for a part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

from devtools.build.generate.openapi import Rule

_PART = re.compile(r"\{([A-Za-z]\w*)\}")


def rule(declared: Mapping[str, Any], parts: Mapping[str, str], present: str = "") -> Rule:
    """The rule with its parts filled in.

    ``present`` is the field of the spec without which the rule does not apply; "" where it always does. Parts may name
    other parts. Raises :class:`InvalidFramework` for an unknown one.
    """
    made = {
        key: _fill(value, parts) if key in ("rule", "messageExpression") else value for key, value in declared.items()
    }
    return {**made, "rule": f"!has(self.{present}) || ({made['rule']})"} if present else made


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
