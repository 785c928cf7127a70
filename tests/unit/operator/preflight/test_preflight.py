"""`dljob-operator preflight`: what it reads, its report and its exit code, against the API server in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import JSON
from support.builders import jaxjob, pytorchjob
from support.fake_api_server import Fault, failure
from support.fake_kube_api import FakeKubeApi

from dljob_operator import cli
from dljob_operator.engine.cache.nesting import UNREADABLE
from dljob_operator.engine.kube import KubeApi, NoCluster
from dljob_operator.preflight import frameworks

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Cluster(FakeKubeApi):
    """Answers reviews of permissions, too: the service account may patch the resources in `patchable`."""

    def __init__(self) -> None:
        super().__init__()
        self.patchable = {"pods", "services"}
        self.reviews: list[dict[str, Any]] = []

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> dict[str, Any]:
        if path != REVIEWS:
            return super().request(method, path, body, query=query, content_type=content_type)
        assert isinstance(body, dict)
        self.reviews.append(body["spec"])
        asked = body["spec"]["resourceAttributes"]
        return {"status": {"allowed": asked["verb"] == "patch" and asked["resource"] in self.patchable}}

    def define(self, kind: str, *versions: str, stored: tuple[str, ...] = ()) -> None:
        """Store the definition of a kind; the first version is the one that is stored."""
        plural = f"{kind.lower()}s"
        served = [{"name": name, "served": True, "storage": name == versions[0]} for name in versions]
        definition = {
            "metadata": {"name": f"{plural}.kubeflow.org"},
            "spec": {"group": "kubeflow.org", "names": {"kind": kind, "plural": plural}, "versions": served},
            "status": {"storedVersions": list(stored or versions[:1])},
        }
        self.fake.add(("", "customresourcedefinitions"), definition)

    def run(self, job: dict[str, Any], name: str, pods: tuple[str, ...], namespace: str = "team") -> dict[str, Any]:
        """Store a running job, and its pods as training-operator names them."""
        job["metadata"] |= {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
        job["status"] = {"conditions": [{"type": "Running", "status": "True"}]}
        owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": name, "uid": f"uid-of-{name}"}
        for pod in pods:
            metadata = {
                "name": f"{name}-{pod}",
                "namespace": namespace,
                "ownerReferences": [{**owner, "controller": True}],
            }
            self.fake.add((namespace, "pods"), {"metadata": metadata, "status": {"phase": "Running"}})
        return self.fake.add((namespace, f"{job['kind'].lower()}s"), job)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    api = Cluster()
    monkeypatch.setattr(KubeApi, "connect", lambda kubeconfig: api)
    return api


def one_job(cluster: Cluster) -> None:
    cluster.define("PyTorchJob", "v1")
    cluster.run(pytorchjob(master=1, worker=1), "digits", ("master-0", "worker-0"))


def test_all_can_be_adopted(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    one_job(cluster)
    ended = cluster.run(pytorchjob(master=1), "ended", ())
    ended["status"]["conditions"] = [{"type": "Succeeded", "status": "True"}]
    assert cli.main(["preflight"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "team/digits PyTorchJob: can be adopted (2 Pod)",
        "1 running jobs: 1 can be adopted, 0 cannot",
    ]


def test_some_cannot(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    one_job(cluster)
    cluster.define("JAXJob", "v1")
    cluster.define("MPIJob", "v1alpha1")
    cluster.run(jaxjob(worker=1), "another", ())
    cluster.run({**jaxjob(), "apiVersion": "kubeflow.org/v1alpha1", "kind": "MPIJob"}, "pi", (), "lab")
    taken = {"metadata": {"name": "digits-master-0", "namespace": "team"}}
    cluster.fake.add(("team", "services"), taken)
    assert cli.main(["preflight"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "lab/pi MPIJob: cannot be adopted"
    served = "kubeflow.org/v1, kubeflow.org/v2beta1"
    assert lines[1] == f"  apiVersion: this operator serves MPIJob as {served}, not as kubeflow.org/v1alpha1"
    assert lines[2].startswith("    fix: let the job end")
    assert lines[3].startswith("  CustomResourceDefinition/mpijobs.kubeflow.org: status.storedVersions has v1alpha1")
    assert lines[5:8] == [
        "team/another JAXJob: can be adopted",
        "  note: 1 of 1 pods do not exist and will be created: another-worker-0",
        "team/digits PyTorchJob: cannot be adopted",
    ]
    assert lines[8].startswith("  Service/digits-master-0: the job needs an object of that name")
    assert lines[-1] == "3 running jobs: 1 can be adopted, 2 cannot"


def test_a_pod_group_needs_a_permission(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    one_job(cluster)
    for pod in cluster.fake.objects["team", "pods"].values():
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "digits"}
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "digits", "uid": "uid-of-digits"}
    metadata = {"name": "digits", "namespace": "team", "ownerReferences": [{**owner, "controller": True}]}
    cluster.fake.add(("team", "podgroups"), {"apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": metadata})
    assert cli.main(["preflight", "--gang-scheduler-name", "volcano"]) == 1
    assert "the operator may not patch podgroups.scheduling.volcano.sh" in capsys.readouterr().out
    cluster.patchable.add("podgroups")
    assert cli.main(["preflight", "--gang-scheduler-name", "volcano"]) == 0
    assert "can be adopted (2 Pod, 1 PodGroup.scheduling.volcano.sh)" in capsys.readouterr().out
    assert cli.main(["preflight"]) == 0
    with pytest.raises(SystemExit):
        cli.main(["preflight", "--gang-scheduler-name", "a b"])


def test_as_json(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    one_job(cluster)
    cluster.define("MPIJob", "v1alpha1")
    cluster.patchable = {"services"}
    assert cli.main(["preflight", "-o", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (job,) = document["jobs"]
    (problem,) = job.pop("problems")
    assert job == {
        "kind": "PyTorchJob",
        "namespace": "team",
        "name": "digits",
        "notes": [],
        "adopts": ["Pod/digits-master-0", "Pod/digits-worker-0"],
        "canBeAdopted": False,
    }
    assert problem["where"] == "Pod/digits-master-0"
    assert "the operator may not patch pods" in problem["text"]
    assert problem["fix"]
    assert (document["adoptable"], document["notAdoptable"]) == (0, 1)
    assert [one["where"] for one in document["definitions"]] == ["CustomResourceDefinition/mpijobs.kubeflow.org"]


def test_it_only_reads(cluster: Cluster) -> None:
    one_job(cluster)
    before = {key: dict(objects) for key, objects in cluster.fake.objects.items()}
    cli.main(["preflight"])
    assert {call.method for call in cluster.fake.calls} == {"GET"}
    assert cluster.fake.objects == before


def test_whose_permissions_it_checks(cluster: Cluster) -> None:
    one_job(cluster)
    cluster.run(pytorchjob(master=1), "other", ("master-0",))
    assert cli.main(["preflight", "--service-account", "ns:name"]) == 0
    assert sorted(one["resourceAttributes"]["resource"] for one in cluster.reviews) == ["pods", "services"]
    assert {one["user"] for one in cluster.reviews} == {"system:serviceaccount:ns:name"}
    assert cluster.reviews[0]["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    ]
    assert cluster.reviews[0]["resourceAttributes"]["namespace"] == "team"


def test_without_a_service_account_no_permission_is_checked(cluster: Cluster) -> None:
    one_job(cluster)
    cluster.patchable = set()
    assert cli.main(["preflight", "--service-account", ""]) == 0
    assert cluster.reviews == []


def test_only_some_namespaces(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    one_job(cluster)
    for namespace in ("a", "b", "c"):
        cluster.run(pytorchjob(master=1), f"in-{namespace}", ("master-0",), namespace)
    assert cli.main(["preflight", "--namespace", "a, b"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names[:-1] == ["a/in-a", "b/in-b"]
    namespaces = {call.namespace for call in cluster.fake.calls if call.plural != "customresourcedefinitions"}
    assert namespaces == {"a", "b"}


def test_objects_besides_pods_and_services_are_looked_up_by_name(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.define("PyTorchJob", "v1")
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    elastic = {"minReplicas": 1, "maxReplicas": 2, "metrics": metrics}
    cluster.run(pytorchjob(worker=1, elasticPolicy=elastic), "grows", ("worker-0",))
    assert cli.main(["preflight"]) == 0
    key = ("team", "horizontalpodautoscalers")
    cluster.fake.add(key, {"metadata": {"name": "grows", "namespace": "team"}})
    assert cli.main(["preflight"]) == 1
    assert "HorizontalPodAutoscaler/grows: the job needs" in capsys.readouterr().out


def test_an_unreadable_job_is_named_and_left_out(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one_job(cluster)
    unreadable = {UNREADABLE: True, "metadata": {"name": "deep", "namespace": "team", "uid": "1"}}
    list_objects = cluster.list_objects

    def with_another(path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        found = list_objects(path, query)
        return {**found, "items": [unreadable, *found["items"]]} if path.endswith("/pytorchjobs") else found

    monkeypatch.setattr(cluster, "list_objects", with_another)
    assert cli.main(["preflight"]) == 0
    (record,) = [one for one in caplog.records if "nested too deeply" in one.getMessage()]
    assert record.__dict__["dljob_fields"]["name"] == "deep"


def test_no_kind_is_there(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["preflight"]) == 0
    assert capsys.readouterr().out == "0 running jobs: 0 can be adopted, 0 cannot\n"


@pytest.mark.parametrize(
    ("versions", "stored", "read"),
    [(("v1beta2", "v1"), (), "v1"), (("v1beta2",), (), "v1beta2")],
    ids=["the version that we serve", "the version that is stored"],
)
def test_in_which_version_jobs_are_read(
    cluster: Cluster, versions: tuple[str, ...], stored: tuple[str, ...], read: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    cluster.define("PyTorchJob", *versions)
    cluster.run(pytorchjob(master=1), "digits", ("master-0",))
    paths: list[str] = []
    list_objects = cluster.list_objects

    def noted(path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        paths.append(path)
        return list_objects(path, query)

    monkeypatch.setattr(cluster, "list_objects", noted)
    assert cli.main(["preflight"]) == 1, "v1beta2 is stored"
    assert f"/apis/kubeflow.org/{read}/pytorchjobs" in paths
    assert ("not as kubeflow.org/v1beta2" in capsys.readouterr().out) == (read == "v1beta2")


def test_all_pages_are_read(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.define("PyTorchJob", "v1")
    job = cluster.run(pytorchjob(master=1), "digits", ("master-0",))
    list_objects = cluster.list_objects
    asked: list[Any] = []

    def pages(path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if not path.endswith("/pytorchjobs"):
            return list_objects(path, query)
        asked.append(dict(query or {}))
        first = "continue" not in (query or {})
        return {"items": [] if first else [job], "metadata": {"continue": "more"} if first else {}}

    monkeypatch.setattr(cluster, "list_objects", pages)
    cluster.patchable = set()
    assert cli.main(["preflight"]) == 1, "the job of the second page cannot be adopted"
    assert asked == [{"limit": 500}, {"limit": 500, "continue": "more"}]


@pytest.mark.parametrize("arguments", [["-o", "yaml"], ["--service-account", "name"], ["FILE"]])
def test_a_bad_command_line(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["preflight", *arguments])
    assert caught.value.code == 2


def test_what_cannot_be_read_is_no_answer(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one_job(cluster)
    denied = failure(403, "Forbidden", 'pods is forbidden: cannot list resource "pods" in API group ""')
    cluster.fake.faults = [Fault(denied, lambda call: call.plural == "pods")]
    assert cli.main(["preflight"]) == 2
    assert "pods is forbidden" in capsys.readouterr().err

    def nothing(kubeconfig: object) -> KubeApi:
        raise NoCluster("no cluster configuration")

    monkeypatch.setattr(KubeApi, "connect", nothing)
    assert cli.main(["preflight"]) == 2
    assert capsys.readouterr().err == "dljob-operator: no cluster configuration\n"

    def broken(kubeconfig: object) -> KubeApi:
        raise ValueError("line 3: not YAML")

    monkeypatch.setattr(KubeApi, "connect", broken)
    assert cli.main(["preflight"]) == 2
    assert capsys.readouterr().err == "dljob-operator: preflight failed: ValueError: line 3: not YAML\n"


def test_the_frameworks_are_those_that_a_reconcile_uses() -> None:
    found = frameworks.load()
    assert set(found) >= {"TFJob", "PyTorchJob", "MXJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"}
    assert found["PyTorchJob"].framework.hooks.objects is not None
    assert found["TFJob"].framework.files
    assert found["MPIJob"].kind.versions == ("v1", "v2beta1")
