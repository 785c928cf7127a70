"""Add the missing RBAC rule to the message of a 403 response, so that administrators need not derive it."""

from __future__ import annotations

import re

_DENIED = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')


def with_rule(refusal: str) -> str:
    """Return the API server's message, followed by the rule to add to the operator's role."""
    denied = _DENIED.search(refusal)
    if denied is None:
        return refusal
    verb, resource, group = denied.groups()
    return (
        f'{refusal}; add to the operator\'s role: {{apiGroups: ["{group}"], resources: [{resource}], verbs: [{verb}]}}'
    )
