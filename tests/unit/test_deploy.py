"""kustomize and Helm say the same, from the same files; nothing is kept twice."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import CONFIG_MAP
from support import pod_security

from dljob_operator.engine.serving.progress.leader_label import LABEL
from dljob_operator.options import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
KUSTOMIZE = ROOT / "deploy" / "kustomize"
CHART = ROOT / "deploy" / "helm" / "dljob-operator"
PROGRESS = KUSTOMIZE / "components" / "progress"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_every_definition_is_deployed() -> None:
    listed = read(ROOT / "crds" / "Kustomization")["resources"]
    assert sorted(listed) == sorted(path.name for path in (ROOT / "crds").glob("*.yaml"))


def test_the_charts_files_are_links_into_this_repository() -> None:
    for path in (CHART / "files").rglob("*"):
        if path.is_dir() and not path.is_symlink():
            continue
        assert path.is_symlink(), path
        target = path.resolve()
        assert target.exists(), path
        sources = (ROOT / "crds", KUSTOMIZE, ROOT / "deploy" / "monitoring")
        assert any(target.is_relative_to(source) for source in sources), path
    assert (CHART / "files" / "crds").resolve() == ROOT / "crds"


def test_no_rule_has_a_wildcard() -> None:
    rules = read(KUSTOMIZE / "base" / "cluster_role.yaml")["rules"]
    for path in (KUSTOMIZE / "components").glob("*/rules.yaml"):
        rules += [entry["value"] for entry in read(path)]
    assert not any("*" in rule[key] for rule in rules for key in ("apiGroups", "resources", "verbs"))


def test_nothing_grants_commands_in_pods_unless_it_is_asked_for() -> None:
    """The component mpi-exec-permissions: with it the operator can give pods rights in their namespace."""
    component = KUSTOMIZE / "components" / "mpi-exec-permissions"
    assert "pods/exec" in (component / "rules.yaml").read_text(encoding="utf-8")
    overlays = [path for path in KUSTOMIZE.rglob("kustomization.yaml") if path.parent != component]
    assert len(overlays) > 5
    assert [path for path in overlays if component.name in str(read(path))] == []
    assert component.name not in read(CHART / "values.yaml")["rbac"]["optionalPermissions"]
    (csv,) = (ROOT / "deploy" / "olm" / "manifests").glob("*.clusterserviceversion.yaml")
    for path in (csv, KUSTOMIZE / "base" / "cluster_role.yaml"):
        assert "pods/exec" not in path.read_text(encoding="utf-8")


def test_kustomize_needs_no_file_beyond_its_folders() -> None:
    """`kubectl apply -k` reads folders anywhere, but files only below the one that names them."""
    for path in (*KUSTOMIZE.rglob("kustomization.yaml"), ROOT / "crds" / "Kustomization"):
        for entry in [*read(path).get("resources", []), *read(path).get("components", [])]:
            target = path.parent / entry
            assert target.exists(), f"{path}: {entry}"
            assert target.is_dir() or target.resolve().parent == path.parent, f"{path}: {entry}"


def test_the_role_in_the_operators_namespace_permits_one_config_map() -> None:
    documents = yaml.safe_load_all((KUSTOMIZE / "base" / "config_role.yaml").read_text(encoding="utf-8"))
    (role,) = [document for document in documents if document["kind"] == "Role"]
    assert [rule.get("resourceNames") for rule in role["rules"]] == [[CONFIG_MAP]]


def test_the_chart_permits_no_other_config_map_either() -> None:
    lines = [line.strip() for line in (CHART / "templates" / "rbac.yaml").read_text(encoding="utf-8").splitlines()]
    after = [lines[number + 1] for number, line in enumerate(lines) if line == "resources: [configmaps]"]
    assert after == [f"resourceNames: [{CONFIG_MAP}]"] * 2


def test_each_release_of_the_chart_has_a_lease_of_its_own() -> None:
    template = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")
    _, _, rest = template.partition("{{- if .Values.leaderElection.enabled }}\n")
    first, second, *_ = rest.splitlines()
    assert '"--leader-election-id=%s" (include "dljob.name" .)' in first
    assert '"--leader-elect"' in second


def test_the_leader_has_the_same_rights_by_kustomize_and_by_helm() -> None:
    template = (CHART / "templates" / "rbac.yaml").read_text(encoding="utf-8")
    _, _, rest = template.partition("{{- if .Values.leaderElection.enabled }}\n")
    rules, end, _ = rest.partition("{{- end }}")
    assert end
    patch = read(KUSTOMIZE / "components" / "leader-election" / "rules.yaml")
    assert [entry["value"] for entry in patch] == yaml.safe_load(rules)
    assert {(entry["op"], entry["path"]) for entry in patch} == {("add", "/rules/-")}


def test_the_job_of_helm_test_has_the_pull_secrets_of_its_image() -> None:
    replica = runpy.run_path(str(ROOT / "build" / "entrypoint" / "dljob-try"))["replica"]
    assert replica("i:1", ["one", "two"])["template"]["spec"]["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
    assert replica("i:1", [])["template"]["spec"]["imagePullSecrets"] == []
    template = (CHART / "templates" / "tests" / "reconciles.yaml").read_text(encoding="utf-8")
    assert "{{- range .Values.image.pullSecrets }}\n        - --pull-secret={{ .name }}" in template


def test_the_page_has_no_rights_of_its_own() -> None:
    component = KUSTOMIZE / "components" / "ui"
    documents = {one["kind"]: one for one in map(read, component.glob("[!k]*.yaml"))}
    assert set(documents) == {"ServiceAccount", "Service", "Deployment"}
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == documents["ServiceAccount"]["metadata"]["name"] == "dljob-ui"
    assert pod["automountServiceAccountToken"] is documents["ServiceAccount"]["automountServiceAccountToken"] is False
    assert [set(one) - {"name"} for one in pod["volumes"]] == [{"configMap"}, {"emptyDir"}]
    assert list(pod_security.violations(pod)) == []
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True and "env" not in container
    deployments = [read(path) for path in KUSTOMIZE.rglob("deployment.yaml") if path.parent.name in ("base", "ui")]
    assert len({one["spec"]["template"]["spec"]["containers"][0]["image"] for one in deployments}) == 1
    for path in (*KUSTOMIZE.rglob("*.yaml"), *(CHART / "templates").rglob("*.yaml")):
        assert path.parent == component or path.name == "ui.yaml" or "dljob-ui" not in path.read_text(encoding="utf-8")


def test_one_pod_of_the_page_runs_at_a_time() -> None:
    """Browsers would reach now one and now the other, and each knows its own sessions alone."""
    spec = read(KUSTOMIZE / "components" / "ui" / "deployment.yaml")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_the_network_policy_of_the_document_is_for_the_page() -> None:
    text = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("let no other client reach the pod")
    policy = yaml.safe_load(rest.split("\n\n")[1])
    assert policy["kind"] == "NetworkPolicy"
    template = read(KUSTOMIZE / "components" / "ui" / "deployment.yaml")["spec"]["template"]
    assert policy["spec"]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    (rule,) = policy["spec"]["ingress"]
    assert [one["port"] for one in rule["ports"]] == [one["name"] for one in template["spec"]["containers"][0]["ports"]]


def test_the_endpoint_of_progress_has_these_rights_alone() -> None:
    name = "dljob-operator-progress"
    rules = {
        "role": [
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get", "update"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]},
        ],
        "cluster_role": [{"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}],
    }
    for file, wanted in rules.items():
        role, binding = read(PROGRESS / f"{file}.yaml"), read(PROGRESS / f"{file}_binding.yaml")
        assert (role["metadata"]["name"], role["rules"]) == (name, wanted)
        group = "rbac.authorization.k8s.io"
        assert binding["roleRef"] == {"apiGroup": group, "kind": role["kind"], "name": name}
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "dljob-operator"}]
    granting = {path.stem for path in PROGRESS.iterdir() if "rules:" in path.read_text(encoding="utf-8")}
    assert granting == set(rules)


def test_the_service_of_progress_selects_the_leader_at_the_engines_port() -> None:
    service = read(PROGRESS / "service.yaml")
    labels = read(KUSTOMIZE / "base" / "deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == {**labels, LABEL: "true"}
    (port,) = service["spec"]["ports"]
    patch = [entry["value"] for entry in read(PROGRESS / "deployment.yaml")]
    assert {"name": port["targetPort"], "containerPort": port["port"]} in patch
    assert {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} in patch
    assert {"name": "DLJOB_PROGRESS", "value": "on"} in patch
    (address,) = [one.default for one in SETTINGS if one.option == "--progress-bind-address"]
    assert address == f":{port['port']}"


def test_the_objects_of_progress_are_in_the_operators_namespace() -> None:
    """An overlay of the document sets no namespace itself."""
    overlays = {read(KUSTOMIZE / name / "kustomization.yaml")["namespace"] for name in ("default", "namespaced")}
    files = ("service", "role", "role_binding")
    assert overlays == {read(PROGRESS / f"{file}.yaml")["metadata"]["namespace"] for file in files}


def test_the_chart_has_every_object_of_progress() -> None:
    links = CHART / "files" / "kustomize" / "components" / PROGRESS.name
    files = read(PROGRESS / "kustomization.yaml")["resources"]
    assert sorted(path.name for path in links.iterdir()) == sorted(files)
    template = (CHART / "templates" / "progress.yaml").read_text(encoding="utf-8")
    assert [file for file in files if f'"{file.removesuffix(".yaml")}"' not in template] == []


def test_nothing_serves_progress_unless_it_is_asked_for() -> None:
    overlays = [path for path in KUSTOMIZE.rglob("kustomization.yaml") if path.parent != PROGRESS]
    assert [path for path in overlays if PROGRESS.name in str(read(path))] == []
    assert read(CHART / "values.yaml")["progress"] == ""
    bundle = (ROOT / "deploy" / "olm" / "manifests").glob("*.clusterserviceversion.yaml")
    for path in (*bundle, *(KUSTOMIZE / "base").iterdir()):
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("tokenreviews", "8444", "DLJOB_PROGRESS")), path
