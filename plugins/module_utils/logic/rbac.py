"""What the API server says of a right that is missing, with the rule that would give it."""

from __future__ import annotations

import re
from collections.abc import Sequence

# the words within quotes may come quoted once more, where a client's exception shows the answer as it came
_DENIED = re.compile(r'cannot (\w+) resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)\\*"')


def explain_denial(text: str) -> str:
    """``text`` with a rule for each right that it says is missing, to be added to the operator's role as it stands."""
    denied = dict.fromkeys(_DENIED.findall(text))
    rules = [
        f'{{apiGroups: ["{group}"], resources: [{resource}], verbs: [{verb}]}}' for verb, resource, group in denied
    ]
    return f"{text}; add to the operator's role: {', '.join(rules)}" if rules else text


def missing_permissions(texts: Sequence[str]) -> tuple[str, ...]:
    """Those of ``texts`` that are about a missing right, explained: the operator's administrator must know them, not
    only the job's user. The same right is told once: of a job with a thousand pods one refusal is enough."""
    first: dict[tuple[tuple[str, str, str], ...], str] = {}
    for text in texts:
        denied = tuple(_DENIED.findall(text))
        if denied:
            first.setdefault(denied, explain_denial(text))
    return tuple(first.values())
