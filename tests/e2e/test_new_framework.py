"""CONTRIBUTING.md's claim that adding a framework is a role of a few lines and a CRD: done here outside the tree."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from devtools.demo.operator_process import OperatorProcess
from kubernetes import client, config, watch
from support.live_jobs import UNTIL_ENDED, UNTIL_RELEASED, Cluster, shell_template

ROLE_VARS = """
---
echo_framework:
  name: echo
  kinds: [EchoJob]
  container: echo
  replica_types:
    Leader: {minimum: 1, maximum: 1}
    Follower: {}
  success_target: [Leader]
  hooks:
    environment:
      ECHO_RANK: "{rank}"
      ECHO_SIZE: "{total}"
      ECHO_LEADER: "{rank0_host}:{rank0_port}"
  flavors:
    - groups: [example.com]
      replicas_layout: map
      replicas_fields: [replicaSpecs]
      default_port: 7000
      names: job
      status: v1
"""

ROLE_TASKS = """
---
- name: Reconcile the EchoJob
  ansible.builtin.import_role:
    name: dljob.operator.dljob
    rolespec_validate: false
  vars:
    dljob_framework: "{{ echo_framework }}"
"""

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: echojobs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: EchoJob, plural: echojobs, singular: echojob}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


@pytest.fixture
def operator_of_two_frameworks(cluster: Path, images: None, namespace: str, tmp_path: Path) -> OperatorProcess:
    role = tmp_path / "roles" / "echo"
    for part, text in (("vars", ROLE_VARS), ("tasks", ROLE_TASKS)):
        (role / part).mkdir(parents=True)
        (role / part / "main.yml").write_text(text, encoding="utf-8")
    watches = tmp_path / "watches.yaml"
    entry = {
        "group": "example.com",
        "version": "v1",
        "kind": "EchoJob",
        "role": str(role),
        "manageStatus": False,
        "snakeCaseParameters": False,
        "markUnsafe": True,
    }
    watches.write_text(yaml.safe_dump([entry]), encoding="utf-8")
    return OperatorProcess(
        cluster, tmp_path / "operator.log", ("--watches-file", str(watches), "--namespace", namespace)
    )


@pytest.fixture
def echo_crd(cluster: Path) -> None:
    api = client.ApiextensionsV1Api(config.new_client_from_config(str(cluster)))
    name = "echojobs.example.com"
    try:
        api.create_custom_resource_definition(yaml.safe_load(CRD))
    except client.ApiException as e:
        if e.status != 409:
            raise
    stream = watch.Watch().stream(
        api.list_custom_resource_definition, field_selector=f"metadata.name={name}", timeout_seconds=30
    )
    for event in stream:
        held = {c.type: c.status for c in event["object"].status.conditions or ()}
        if held.get("Established") == "True":
            yield
            break
    api.delete_custom_resource_definition(name)


def test_a_framework_from_outside_the_tree(
    cluster: Path, namespace: str, echo_crd: None, operator_of_two_frameworks: OperatorProcess
) -> None:
    here = Cluster(cluster, namespace)

    def template(script: str) -> dict[str, object]:
        return shell_template(script, None, container="echo")

    manifest = {
        "apiVersion": "example.com/v1",
        "kind": "EchoJob",
        "metadata": {"name": "hello"},
        "spec": {
            "replicaSpecs": {
                "leader": {"template": template("echo I am $ECHO_RANK of $ECHO_SIZE; " + UNTIL_RELEASED)},
                "follower": {
                    "replicas": 2,
                    "template": template("echo to $ECHO_LEADER from $ECHO_RANK; " + UNTIL_ENDED),
                },
            }
        },
    }
    with operator_of_two_frameworks as process:
        process.wait_ready()
        job = here.create(manifest)
        running = job.wait_running()
        assert set(running["replicaStatuses"]) == {"Leader", "Follower"}
        assert here.wait_log("hello-leader-0", "\n", "echo").strip() == "I am 0 of 3"
        assert here.wait_log("hello-follower-1", "\n", "echo").strip() == "to hello-leader-0:7000 from 2"
        job.release("leader")
        assert job.wait_end()["state"] == "Succeeded"
