"""What the engine tells the action plugin by environment variables."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.dljob.operator.plugins.action import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared import operator_defaults
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    FORCE_DELETE_VARIABLE,
    MAX_REPLICAS,
    MAX_REPLICAS_VARIABLE,
    TERMINATION_MESSAGE_POLICY_VARIABLE,
)
from support.builders import declaration


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (operator_defaults.force_delete_after, "", None),
        (operator_defaults.force_delete_after, "0", 0),
        (operator_defaults.force_delete_after, "300", 300),
        (operator_defaults.positive, "7", 7),
        (operator_defaults.termination_message_policy, "File", "File"),
        (operator_defaults.services, "per-replica", "per-replica"),
        (operator_defaults.cluster_domain, "", ""),
        (operator_defaults.cluster_domain, "ml.example", "ml.example"),
        (operator_defaults.image, "a.example/b:1", "a.example/b:1"),
        (operator_defaults.cloud, "", ""),
        (operator_defaults.cloud, "gke", "gke"),
    ],
)
def test_a_value(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        *((operator_defaults.force_delete_after, text, "a number of seconds") for text in ("-1", "5m", "1.5")),
        *((operator_defaults.image, text, "no name of an image") for text in ("", "a b", "a:1\n")),
        *((operator_defaults.positive, text, "a number of 1 or more") for text in ("", "0", "-1", "many", "1e3")),
        *(
            (operator_defaults.termination_message_policy, text, "neither FallbackToLogsOnError nor File")
            for text in ("", "file")
        ),
        *((operator_defaults.services, text, "neither per-job nor per-replica") for text in ("", "replica")),
        *((operator_defaults.cluster_domain, text, "no DNS domain") for text in ("A", "a..b", ".", "-a", "a b")),
        (operator_defaults.cloud, "aws", "neither gke nor azure"),
    ],
)
def test_a_value_that_is_none(read: Callable[[str], object], text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        read(text)
    assert str(caught.value).startswith(repr(text))


def test_the_action_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_DELETE_VARIABLE, "5m")
    with pytest.raises(AnsibleActionFail, match=f"{FORCE_DELETE_VARIABLE}: '5m'"):
        reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")


@pytest.mark.parametrize("value", [None, ""], ids=["not set", "empty"])
def test_a_variable_without_a_value_is_the_default(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    for name in (FORCE_DELETE_VARIABLE, MAX_REPLICAS_VARIABLE, TERMINATION_MESSAGE_POLICY_VARIABLE):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    framework = reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")
    assert framework.force_delete_after_seconds is None
    assert framework.max_replicas == MAX_REPLICAS
    assert framework.termination_message_policy == "FallbackToLogsOnError"


def test_it_is_part_of_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_DELETE_VARIABLE, "60")
    framework = reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")
    assert framework.force_delete_after_seconds == 60


def test_whether_logs_are_quoted_is_part_of_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TERMINATION_MESSAGE_POLICY_VARIABLE, "File")
    framework = reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")
    assert framework.termination_message_policy == "File"
