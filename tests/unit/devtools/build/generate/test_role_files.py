"""The generated files of a role, and the rules for its jobs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import yaml
from devtools.build.generate import model, rbac, role_files, watches
from devtools.paths import ROOT

COMMON: dict[str, Any] = yaml.safe_load((ROOT / role_files.COMMON_SPECS).read_text(encoding="utf-8"))
ECHO = {
    "name": "echo",
    "title": "Echo",
    "kinds": [
        {"group": "example.com", "kind": "EchoJob", "versions": ["v1", "v1alpha1"]},
        {"group": "old.org", "kind": "EchoJob", "versions": ["v1"]},
    ],
    "container": "echo",
    "replica_types": {"Leader": {}},
    "flavors": [
        {"extends": "kubeflow_v1", "groups": ["example.com"], "replicas_fields": ["replicaSpecs"]},
        {"replicas_layout": "list", "replicas_fields": [""], "groups": ["old.org"]},
    ],
    "permissions": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]}],
}
FRAMEWORK = model.framework("echo", ECHO)


def made(path: str) -> Any:
    return yaml.safe_load(role_files.texts(FRAMEWORK, COMMON)[Path(path)])


def test_the_task_imports_the_reconcile_unchecked() -> None:
    """The validation is a task and so a fork, which takes about as long as the whole reconcile."""
    (task,) = made("tasks/main.yml")
    assert task["name"] == "Reconcile the Echo jobs"
    assert task["ansible.builtin.import_role"] == {"name": "dljob.operator.dljob", "rolespec_validate": False}
    assert task["vars"] == {"dljob_framework": "{{ echo_framework }}"}


def test_a_role_takes_what_the_common_role_takes() -> None:
    specified = made("meta/argument_specs.yml")["argument_specs"]["main"]
    common = COMMON["argument_specs"]["main"]["options"]
    assert specified["options"] == {
        name: option for name, option in common.items() if name not in ("dljob_framework", "dljob_frameworks")
    }
    assert specified["short_description"] == "Reconciles Echo jobs"
    assert specified["description"][0].startswith("Reconciles jobs of the kind EchoJob, in every API flavor. ")


def test_the_metadata() -> None:
    galaxy = yaml.safe_load(role_files.metadata(FRAMEWORK, "someone"))["galaxy_info"]
    assert (galaxy["author"], galaxy["description"]) == ("someone", "EchoJob, distributed training with Echo")
    assert galaxy["min_ansible_version"] == "2.18", "a text, not a number"


def test_watches() -> None:
    text = watches.text([FRAMEWORK], {"echo": "a.b.echo"}, "x")
    first, second = yaml.safe_load(text)
    assert (first["group"], first["version"], second["group"], second["version"]) == (
        "example.com",
        "v1",
        "old.org",
        "v1",
    )
    assert first | {"group": "old.org"} == second
    assert first["role"] == "a.b.echo"
    switches = {key: value for key, value in first.items() if isinstance(value, bool)}
    assert switches == {
        "manageStatus": False,
        "snakeCaseParameters": False,
        "markUnsafe": True,
        "watchAnnotationsChanges": True,
        "watchDependentResources": False,
    }
    assert "version: v1 # the CRD serves v1alpha1 too" in text
    assert "version: v1 # ansible-operator takes one v1 EchoJob, the first" in text


def grants(rules: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def test_a_job_without_a_time_to_live_is_not_deleted() -> None:
    found = grants(yaml.safe_load("rules:\n" + rbac.engine_rules([FRAMEWORK]))["rules"])
    both = {
        (group, *right)
        for group in ("example.com", "old.org")
        for right in (
            ("echojobs", "get"),
            ("echojobs", "list"),
            ("echojobs", "watch"),
            ("echojobs/status", "patch"),
            ("echojobs/finalizers", "update"),
        )
    }
    # a spec that is a list has no field for a time to live
    assert {rule for rule in found if rule[0]} == both | {("example.com", "echojobs", "delete")}


def test_what_jobs_own() -> None:
    """Only the declared kinds, and an update only of those: the operator replaces nothing else."""

    def verbs(*owns: str) -> dict[str, set[str]]:
        made: dict[str, set[str]] = {}
        text = rbac.engine_rules([dataclasses.replace(FRAMEWORK, owns=owns)])
        for group, resource, verb in grants(yaml.safe_load("rules:\n" + text)["rules"]):
            if "echojobs" not in resource:
                made.setdefault(f"{resource}.{group}", set()).add(verb)
        return made

    watched = {"create", "delete", "get", "list", "watch"}
    assert verbs() == dict.fromkeys(("pods.", "services.", "configmaps."), watched)
    more = verbs("Service", "Secret", "Job", "Route")
    assert more["services."] == watched | {"update"}
    assert more["jobs.batch"] == watched
    assert more["routes.route.openshift.io"] == {"create", "delete", "get", "patch"}
    assert "secrets." not in more, "an installation without a framework that needs them does not grant them"


def test_what_only_some_installations_grant() -> None:
    rule = {"apiGroups": ["policy"], "resources": ["budgets"], "verbs": ["create"]}
    owner = dataclasses.replace(FRAMEWORK, owns=("Service", "Secret"), permissions=(rule,))
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get"]}
    assert rbac.optional(owner) == {"echo-permissions": [rule, secrets]}, "no list and no change of Secrets"
    assert rbac.optional(dataclasses.replace(FRAMEWORK, owns=("Service",), permissions=())) == {}


def test_the_rights_to_run_commands_in_pods_are_a_component_of_their_own() -> None:
    """Who grants Secrets for SSH keys does not want to grant Roles and pods/exec with them."""
    rule = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}
    permissions = ({"component": "exec-permissions", **rule},)
    owns = ("Secret", "ServiceAccount", "Role", "RoleBinding")
    found = rbac.optional(dataclasses.replace(FRAMEWORK, owns=owns, permissions=permissions))
    granted = {name: grants(rules) for name, rules in found.items()}
    assert granted["echo-permissions"] == {("", "secrets", "create"), ("", "secrets", "get")}
    rbac_group = "rbac.authorization.k8s.io"
    assert granted["echo-exec-permissions"] == {
        ("", "pods/exec", "create"),
        *(("", "serviceaccounts", verb) for verb in ("create", "get")),
        *((rbac_group, "roles", verb) for verb in ("create", "get", "update")),
        *((rbac_group, "rolebindings", verb) for verb in ("create", "get", "update")),
    }
    assert list(granted) == ["echo-exec-permissions", "echo-permissions"]


def test_what_ansible_operator_may_do_besides() -> None:
    steps = yaml.safe_load(rbac.ansible_operator_rules([FRAMEWORK]))
    assert {(step["op"], step["path"]) for step in steps} == {("add", "/rules/-")}
    assert grants([step["value"] for step in steps]) == {
        (group, *right)
        for group in ("example.com", "old.org")
        for right in (("echojobs", "patch"), ("echojobs/status", "update"))
    }


def test_a_cluster_role_of_its_own_has_the_frameworks_permissions() -> None:
    role = yaml.safe_load(rbac.cluster_role([FRAMEWORK], "mine", "x"))
    assert role["metadata"]["name"] == "mine"
    engine = grants(yaml.safe_load("rules:\n" + rbac.engine_rules([FRAMEWORK]))["rules"])
    beside = grants([step["value"] for step in yaml.safe_load(rbac.ansible_operator_rules([FRAMEWORK]))])
    assert grants(role["rules"]) == engine | beside | {("batch", "jobs", "create")}
