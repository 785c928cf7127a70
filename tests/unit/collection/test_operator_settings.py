"""What the reconcile takes from the environment: that of an engine's runs, or of `ansible-playbook playbooks/reconcile.yml`."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.dljob.operator.plugins.action.reconcile import _configured, _settings
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import MPI, TENSORFLOW, environment_of, manifest_of, mpijob_v1, tfjob

ROOT = Path(__file__).resolve().parents[3]
ARGUMENTS = {"config_map": "gpus", "cloud": "", "cluster_domain": "cluster.local"}


def settings(monkeypatch: pytest.MonkeyPatch, **environ: str) -> OperatorSettings:
    for name in ("POD_NAMESPACE", "DLJOB_CLOUD", "DLJOB_CONFIG_NAMESPACE", "DLJOB_GANG_SCHEDULER_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return _settings(ARGUMENTS)


def test_the_namespaces_of_the_config_map(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(monkeypatch).config_namespaces == ()
    assert settings(monkeypatch, POD_NAMESPACE="ml").config_namespaces == ("ml",)
    named = settings(monkeypatch, POD_NAMESPACE="ml", DLJOB_CONFIG_NAMESPACE="default")
    assert named.config_namespaces == ("ml", "default")
    with pytest.raises(AnsibleActionFail, match="DLJOB_CONFIG_NAMESPACE: 'a/b' is not the name of a namespace"):
        settings(monkeypatch, DLJOB_CONFIG_NAMESPACE="a/b")


def test_the_gang_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(monkeypatch).gang is None
    found = settings(monkeypatch, DLJOB_GANG_SCHEDULER_NAME="volcano").gang
    assert found is not None
    assert found.owned_kind == "PodGroup.scheduling.volcano.sh"
    with pytest.raises(AnsibleActionFail, match="DLJOB_GANG_SCHEDULER_NAME: 'a b' is no schedulerName"):
        settings(monkeypatch, DLJOB_GANG_SCHEDULER_NAME="a b")


def test_the_way_into_kueue(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not settings(monkeypatch).kueue
    assert settings(monkeypatch, DLJOB_KUEUE="workloads").kueue
    with pytest.raises(AnsibleActionFail, match="DLJOB_KUEUE: 'pods' is not workloads"):
        settings(monkeypatch, DLJOB_KUEUE="pods")


def test_the_accounts_of_what_jobs_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not settings(monkeypatch).usage
    assert not settings(monkeypatch, DLJOB_USAGE="off").usage
    assert settings(monkeypatch, DLJOB_USAGE="on").usage
    with pytest.raises(AnsibleActionFail, match="DLJOB_USAGE: 'yes' is neither off nor on"):
        settings(monkeypatch, DLJOB_USAGE="yes")


def test_the_image_with_kubectl_reaches_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    def image(given: str) -> str:
        monkeypatch.setenv("DLJOB_MPI_KUBECTL_DELIVERY_IMAGE", given)
        framework = _configured(MPI)
        (container,) = manifest_of(parse_job(mpijob_v1(), framework), "launcher", framework=framework)["spec"][
            "initContainers"
        ]
        return str(container["image"])

    assert image("mirror/kubectl:1") == "mirror/kubectl:1"
    assert image("") == "kubeflow/kubectl-delivery:latest"
    with pytest.raises(AnsibleActionFail, match="DLJOB_MPI_KUBECTL_DELIVERY_IMAGE: 'a b' is no name of an image"):
        image("a b")


def test_the_user_of_added_containers_reaches_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = mpijob_v1()
    resource["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["securityContext"] = {"runAsNonRoot": True}

    def user(given: str) -> object:
        monkeypatch.setenv("DLJOB_NON_ROOT_USER_ID", given)
        framework = _configured(MPI)
        (container,) = manifest_of(parse_job(resource, framework), "launcher", framework=framework)["spec"][
            "initContainers"
        ]
        return container["securityContext"].get("runAsUser")

    assert user("") == 65534
    assert user("2000") == 2000
    assert user("none") is None
    for wrong in ("0", "-1", "x", str(2**31)):
        with pytest.raises(AnsibleActionFail, match=f"DLJOB_NON_ROOT_USER_ID: '{wrong}' is neither none nor a user id"):
            user(wrong)


def test_how_many_services_new_jobs_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def scope(given: str) -> str:
        monkeypatch.setenv("DLJOB_SERVICES", given)
        return parse_job(tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), _configured(TENSORFLOW)).services

    assert scope("") == "per-job"
    assert scope("per-replica") == "per-replica"
    with pytest.raises(AnsibleActionFail, match="DLJOB_SERVICES: 'all' is neither per-job nor per-replica"):
        scope("all")


def test_the_domain_of_the_cluster_under_the_name_that_training_operator_has_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def environment(domain: str) -> str:
        monkeypatch.setenv("CUSTOM_CLUSTER_DOMAIN", domain)
        monkeypatch.setenv("DLJOB_SERVICES", "per-replica")
        framework = _configured(TENSORFLOW)
        job = parse_job(tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), framework)
        return environment_of(manifest_of(job, "worker", framework=framework), "tensorflow")["TF_CONFIG"]

    assert "example-job-worker-1.default.svc:2222" in environment("")
    assert "example-job-worker-1.default.svc.ml.example:2222" in environment("ml.example")
    assert settings(monkeypatch, CUSTOM_CLUSTER_DOMAIN="ml.example").cluster_domain == "ml.example"
    monkeypatch.setitem(ARGUMENTS, "cluster_domain", "of.the.role")
    assert settings(monkeypatch, CUSTOM_CLUSTER_DOMAIN="ml.example").cluster_domain == "of.the.role"
    with pytest.raises(AnsibleActionFail, match="CUSTOM_CLUSTER_DOMAIN: 'a b' is no DNS domain"):
        environment("a b")


def test_the_playbook_offers_the_namespace_of_the_config_map() -> None:
    assert "DLJOB_CONFIG_NAMESPACE=default" in (ROOT / "playbooks" / "reconcile.yml").read_text(encoding="utf-8")
