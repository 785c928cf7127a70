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


NOT_HELD = (
    'roles.rbac.authorization.k8s.io "x" is forbidden: user "y" (groups=["a" "b"]) is attempting to grant RBAC '
    'permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}\n'
    '{APIGroups:[""], Resources:["pods/exec"], ResourceNames:["w-0" "w-1"], Verbs:["create" "get"]}'
)


@pytest.mark.parametrize("text", [NOT_HELD, NOT_HELD.replace('"', '\\"')])
def test_what_an_account_may_not_give_is_explained_too(text: str) -> None:
    """The API server refuses a Role with more rights than its creator has."""
    assert rules(explain_denial(text)) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]},
    ]
    assert missing_permissions([text, text]) == (explain_denial(text),)


def test_the_rule_is_not_lost_behind_the_names_of_a_large_job() -> None:
    names = " ".join(f'"w-{index}"' for index in range(5000))
    assert len(explain_denial(NOT_HELD.replace('"w-0" "w-1"', names))) < 600


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
