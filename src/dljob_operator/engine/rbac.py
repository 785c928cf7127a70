"""A refusal for want of a right, with the rule that would give it: in the log, nobody should have to look it up."""

from __future__ import annotations

import re

_DENIED = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')


def with_rule(refusal: str) -> str:
    """Return the API server's words, and after them what is to be added to the operator's role."""
    denied = _DENIED.search(refusal)
    if denied is None:
        return refusal
    verb, resource, group = denied.groups()
    return (
        f'{refusal}; add to the operator\'s role: {{apiGroups: ["{group}"], resources: [{resource}], verbs: [{verb}]}}'
    )
