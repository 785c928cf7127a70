"""Permission errors are explained with the RBAC rule that grants the permission."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.rbac import explain_denial, missing_permissions

DENIED = 'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group "" in the namespace "c"'
STATUS = (
    'mxjobs.kubeflow.org "x" is forbidden: User "y" cannot patch resource "mxjobs/status" in API group "kubeflow.org"'
)
QUOTA = 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'


def rules(text: str) -> list[object]:
    _, _, rule = text.partition("add to the operator's role: ")
    found: list[object] = yaml.safe_load(f"[{rule}]")
    return found


def test_a_denial_is_explained_with_the_rbac_rule() -> None:
    assert rules(explain_denial(DENIED)) == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
    assert rules(explain_denial(STATUS)) == [
        {"apiGroups": ["kubeflow.org"], "resources": ["mxjobs/status"], "verbs": ["patch"]}
    ]
    assert explain_denial(DENIED).startswith(DENIED)


@pytest.mark.parametrize("text", [QUOTA, "", "no route to host"])
def test_other_messages_are_not_changed(text: str) -> None:
    assert explain_denial(text) == text


def test_several_rights_in_one_text_and_one_right_several_times() -> None:
    assert len(rules(explain_denial(f"{DENIED}; {DENIED}; {STATUS}"))) == 2


def test_an_answer_within_an_exceptions_text() -> None:
    assert rules(explain_denial(DENIED.replace('"', '\\"'))) == rules(explain_denial(DENIED))


def test_each_missing_permission_is_listed_once() -> None:
    assert missing_permissions([QUOTA, f"Pod/a: {DENIED}", f"Pod/b: {DENIED}", STATUS]) == (
        explain_denial(f"Pod/a: {DENIED}"),
        explain_denial(STATUS),
    )
    assert missing_permissions([]) == ()
