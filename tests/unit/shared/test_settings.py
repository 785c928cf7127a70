"""The rows of the settings that the runs read, and what the action plugin gets from the environment by them."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.dljob.operator.plugins.action import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared import settings
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MAX_REPLICAS
from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import Setting
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import declaration


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (settings.FORCE_DELETE_AFTER_SECONDS, "", None),
        (settings.FORCE_DELETE_AFTER_SECONDS, "0", 0),
        (settings.FORCE_DELETE_AFTER_SECONDS, "300", 300),
        (settings.MAX_REPLICAS_PER_JOB, "7", 7),
        (settings.TERMINATION_MESSAGE_POLICY, "File", "File"),
        (settings.SERVICES_SCOPE, "per-replica", "per-replica"),
        (settings.CLUSTER_DOMAIN, "", ""),
        (settings.CLUSTER_DOMAIN, "ml.example", "ml.example"),
        (settings.MPI_KUBECTL_DELIVERY_IMAGE, "a.example/b:1", "a.example/b:1"),
        (settings.CLOUD, "", ""),
        (settings.CLOUD, "gke", "gke"),
        (settings.CONFIG_NAMESPACE, " default ", "default"),
        (settings.KUEUE, "", ""),
        (settings.KUEUE, "workloads", "workloads"),
        (settings.NON_ROOT_USER_ID, "none", None),
        (settings.NON_ROOT_USER_ID, str(2**31 - 1), 2**31 - 1),
        (settings.FRAMEWORKS, "", ()),
        (settings.FRAMEWORKS, "/a::/b", ("/a", "/b")),
    ],
)
def test_a_value(setting: Setting[object], text: str, value: object) -> None:
    assert setting.read(text) == value


@pytest.mark.parametrize(
    ("setting", "text", "says"),
    [
        *((settings.FORCE_DELETE_AFTER_SECONDS, text, "a number of seconds") for text in ("-1", "5m", "1.5")),
        *((settings.MPI_KUBECTL_DELIVERY_IMAGE, text, "no name of an image") for text in ("", "a b", "a:1\n")),
        *((settings.MAX_REPLICAS_PER_JOB, text, "a number of 1 or more") for text in ("", "0", "-1", "many", "1e3")),
        *((settings.TERMINATION_MESSAGE_POLICY, text, "FallbackToLogsOnError nor File") for text in ("", "file")),
        *((settings.SERVICES_SCOPE, text, "neither per-job nor per-replica") for text in ("", "replica")),
        *((settings.CLUSTER_DOMAIN, text, "no DNS domain") for text in ("A", "a..b", ".", "-a", "a b")),
        *((settings.NON_ROOT_USER_ID, text, "none nor a user id") for text in ("", "0", "-1", "x", str(2**31))),
        (settings.CLOUD, "aws", "neither gke nor azure; leave it empty on other clouds"),
        (settings.KUEUE, "pods", "not workloads; leave it empty for Kueue's own integration"),
    ],
)
def test_a_value_that_is_none(setting: Setting[object], text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        setting.read(text)
    assert str(caught.value).startswith(repr(text))


@pytest.mark.parametrize("setting", [*settings.OPTIONS, *settings.VARIABLES], ids=lambda setting: setting.variable)
def test_a_variable_that_is_empty_is_one_that_is_not_set(setting: Setting[object]) -> None:
    assert setting.of({}) == setting.of({setting.variable: ""}) == setting.read(setting.default)


def mxnet() -> Framework:
    """What the action makes of a declaration and of the environment."""
    arguments = {"framework": declaration("mxnet")}
    return reconcile._framework(arguments, lambda name: "")  # noqa: SLF001 - without a task that runs it


def test_the_action_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLJOB_FORCE_DELETE_AFTER_SECONDS", "5m")
    with pytest.raises(AnsibleActionFail, match="DLJOB_FORCE_DELETE_AFTER_SECONDS: '5m'"):
        mxnet()


def test_the_framework_has_the_values_of_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in settings.OPTIONS:
        monkeypatch.delenv(setting.variable, raising=False)
    framework = mxnet()
    assert framework.force_delete_after_seconds is None
    assert framework.max_replicas == MAX_REPLICAS
    assert framework.termination_message_policy == "FallbackToLogsOnError"
    monkeypatch.setenv("DLJOB_FORCE_DELETE_AFTER_SECONDS", "60")
    monkeypatch.setenv("DLJOB_MAX_REPLICAS_PER_JOB", "9")
    monkeypatch.setenv("DLJOB_TERMINATION_MESSAGE_POLICY", "File")
    framework = mxnet()
    assert framework.force_delete_after_seconds == 60
    assert framework.max_replicas == 9
    assert framework.termination_message_policy == "File"
