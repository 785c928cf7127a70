"""The default parameter server: which replicas run it, and what that needs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hash
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import TENSORFLOW, Resource, manifest_of, role_file, tf_template, tfjob
from support.fake_cluster import FakeCluster

MOUNT = {"name": "ps-config-volume", "mountPath": "/ps-server"}
VOLUME = {"name": "ps-config-volume", "configMap": {"name": "cm-ps-76no"}}
COMMAND = [
    "python",
    "/ps-server/grpc_tensorflow_server.py",
    "--cluster_spec=master|master-76no-0.tfjob-76no:2222,ps|ps-76no-0.tfjob-76no:2222;ps-76no-1.tfjob-76no:2222",
    "--job_name=ps",
    "--task_id=1",
]


def with_ps(**entry: Any) -> Resource:
    resource = tfjob(master=1, ps=2)
    resource["spec"]["replicaSpecs"][1].update(entry)
    return resource


def ps_pod(resource: Resource) -> Resource:
    return manifest_of(parse_job(resource, TENSORFLOW), "ps", 1, framework=TENSORFLOW)["spec"]


def test_without_a_template() -> None:
    spec = ps_pod(with_ps())
    (container,) = spec["containers"]
    assert (container["name"], container["image"]) == ("tensorflow", "tensorflow/tensorflow:1.3.0")
    assert container["volumeMounts"] == [MOUNT]
    assert container["command"] == COMMAND
    assert spec["volumes"] == [VOLUME]
    assert spec["restartPolicy"] == "OnFailure"
    assert "TF_CONFIG" in {e["name"] for e in container["env"]}


def test_beside_other_containers_and_in_the_pod_that_the_user_describes() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"c": "d"}, "containers": [{"name": "x"}]}}
    spec = ps_pod(with_ps(template=template))
    assert [c["name"] for c in spec["containers"]] == ["x", "tensorflow"]
    assert spec["nodeSelector"] == {"c": "d"}
    assert "command" not in spec["containers"][0]


@pytest.mark.parametrize("template", [{}, {"spec": None}, {"metadata": {}}, {"spec": {"nodeSelector": {}}}])
def test_half_a_template(template: Any) -> None:
    assert ps_pod(with_ps(template=template))["containers"][0]["command"] == COMMAND


@pytest.mark.parametrize(
    "template", ["x", {"spec": "x"}, {"spec": {"containers": "x"}}, {"spec": {"containers": ["x"]}}]
)
def test_a_malformed_template_is_rejected(template: Any) -> None:
    with pytest.raises(InvalidJob, match="template"):
        parse_job(with_ps(template=template), TENSORFLOW)


def test_image_by_the_job() -> None:
    resource = with_ps()
    resource["spec"]["tfImage"] = "mine:2"
    assert ps_pod(resource)["containers"][0]["image"] == "mine:2"


@pytest.mark.parametrize("flag", [{}, {"IsDefaultPS": False}])
def test_the_users_own_container_is_not_changed(flag: dict[str, bool]) -> None:
    spec = ps_pod(with_ps(template=tf_template(), **flag))
    assert "volumes" not in spec
    assert not {"command", "volumeMounts"} & set(spec["containers"][0])


def test_the_flag_requests_the_program_in_the_users_container() -> None:
    """A template as tf-operator completes it: with the mount, and without the volume."""
    template = tf_template(image="tensorflow/tensorflow:1.3.0", volumeMounts=[MOUNT])
    spec = ps_pod(with_ps(template=template, IsDefaultPS=True))
    assert spec["volumes"] == [VOLUME]
    assert spec["containers"][0]["volumeMounts"] == [MOUNT]
    assert spec["containers"][0]["command"] == COMMAND


def test_the_flag_changes_the_spec_hash() -> None:
    jobs = [parse_job(with_ps(template=tf_template(), IsDefaultPS=flag), TENSORFLOW) for flag in (True, False)]
    first, second = (spec_hash(job, job.groups[1]) for job in jobs)
    assert first != second


def test_other_types_need_a_container() -> None:
    resource = tfjob(master=1, worker=1)
    del resource["spec"]["replicaSpecs"][1]["template"]
    with pytest.raises(InvalidJob, match=r"replicaSpecs\[1\]\.template is missing"):
        parse_job(resource, TENSORFLOW)


def test_v1_has_no_default_servers() -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=1)
    del resource["spec"]["tfReplicaSpecs"]["PS"]["template"]
    with pytest.raises(InvalidJob, match=r"PS\.template is missing"):
        parse_job(resource, TENSORFLOW)


def test_the_program_comes_with_the_pods_that_need_it() -> None:
    fake_cluster = FakeCluster(tfjob(master=1, worker=1, ps=2), TENSORFLOW)
    (config_map,) = fake_cluster.planned().auxiliary_objects
    assert config_map["metadata"]["name"] == "cm-ps-76no"
    assert config_map["metadata"]["ownerReferences"][0]["uid"] == fake_cluster.resource["metadata"]["uid"]
    assert config_map["data"] == {"grpc_tensorflow_server.py": role_file("tensorflow", "parameter_server.py")}
    fake_cluster.start()
    assert fake_cluster.planned().auxiliary_objects == ()
    fake_cluster.others["ConfigMap"].clear()
    fake_cluster.user_deletes(fake_cluster.pod("ps", 0)["metadata"]["name"])
    fake_cluster.kubelet_deletes()
    assert [c["kind"] for c in fake_cluster.planned().auxiliary_objects] == ["ConfigMap"]


def test_a_new_release_does_not_change_the_program_of_running_pods() -> None:
    fake_cluster = FakeCluster(tfjob(master=1, ps=1), TENSORFLOW)
    fake_cluster.start()
    newer = dataclasses.replace(TENSORFLOW, files={**TENSORFLOW.files, "parameter_server.py": "print('newer')"})
    fake_cluster.framework = newer
    assert fake_cluster.planned().ensured_objects == ()


def test_no_default_server_no_program() -> None:
    assert FakeCluster(tfjob(master=1, worker=1), TENSORFLOW).planned().auxiliary_objects == ()
