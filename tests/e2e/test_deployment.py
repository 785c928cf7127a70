"""The operator's image in the cluster, by kustomize and by Helm: a pod that may do what it must, and no more."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.images import build_and_push
from devtools.lab.demo.deploy import NAME, NAMESPACE, DeployedOperator, Kubectl
from devtools.testbed.base import gobuild
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.cluster import lifecycle
from support.live_jobs import UNTIL_RELEASED, Cluster, shell_template, until, v1_job
from support.operator_log import unescaped
from support.pod_security import strict
from support.reporting_program import reporting_job

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "dljob-operator"
IDLE_MEMORY = 300
"""MiB at most; 254 were seen."""

pytestmark = pytest.mark.exclusive
"""Undeploying takes the definitions away, and with them every job in the cluster."""


@pytest.fixture(scope="module")
def settings(cluster: Path) -> Settings:
    made = settings_from()
    build_and_push(made, ["operator", "shell"])
    return made


@pytest.fixture(scope="module")
def kubectl(settings: Settings) -> Iterator[Kubectl]:
    made = Kubectl(settings)
    yield made
    # undeploying takes the definitions away, which other tests have applied and use
    made.run("apply", "--server-side", "--force-conflicts", "-k", ROOT / "crds")
    made.run("wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all")


@pytest.fixture(scope="module")
def helm(settings: Settings) -> Path:
    """The real Helm, built from its module and cached, as the cluster's own tools are."""
    session, _ = lifecycle.existing(settings)
    with session.report.step("build helm", "helm") as step:
        return gobuild.build(settings.cache_dir, settings.go_dir, gobuild.HELM, step) / "helm"


def run_the_example(cluster: Path, namespace: str) -> None:
    """The example job with a shell in each of its five processes: what is tested here is the operator, in a pod.

    That such pods train is seen in test_training.py and test_demo.py: the operator makes the same ones wherever it runs.
    """
    manifest = yaml.safe_load((ROOT / "examples" / "mxnet-digits.yaml").read_text(encoding="utf-8"))
    replicas = manifest["spec"]["mxReplicaSpecs"]
    for type_, replica in replicas.items():
        # the scheduler's end is the job's
        last = f"; {UNTIL_RELEASED}" if type_ == "Scheduler" else ""
        replica["template"] = shell_template(f'echo "$DMLC_ROLE of $DMLC_NUM_WORKER"{last}', None)
    here = Cluster(cluster, namespace)
    job = here.create(manifest)
    job.wait(lambda s: s.get("replicaStatuses", {}).get("Worker", {}).get("succeeded") == 2, "both workers' end")
    job.release("scheduler")
    status = job.wait_end()
    assert status["state"] == "Succeeded", status
    assert here.log(job.pod("worker")["metadata"]["name"]) == "worker of 2\n"


def left_of_it(kubectl: Kubectl, what: str) -> list[str]:
    """What of the operator the cluster still has, jobs and their definitions included."""
    policies = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    kinds = f"namespaces,clusterroles,clusterrolebindings,customresourcedefinitions,{policies}"
    found = kubectl.run("get", kinds, "-o", "name").split()
    names = {"namespace": what}  # all else has the operator's name in every namespace
    ours = [one for one in found if names.get(one.partition("/")[0], NAME) in one]
    return [*ours, *(one for one in found if re.search(r"(dl|mx|tf|caffe2|pytorch|jax|paddle|xgboost|mpi)jobs\.", one))]


def memory(kubectl: Kubectl) -> float:
    """MiB of the processes of the operator's pod; pages that they share count once, and no page cache does."""
    script = "cat /proc/[0-9]*/smaps_rollup 2>/dev/null; true"  # one may end meanwhile
    said = kubectl.run("-n", NAMESPACE, "exec", f"deployment/{NAME}", "--", "sh", "-c", script)
    return sum(map(int, re.findall(r"^Pss: +([0-9]+) kB$", said, re.MULTILINE))) / 1024


@pytest.fixture(scope="class")
def deployed(settings: Settings, kubectl: Kubectl) -> Iterator[DeployedOperator]:
    with DeployedOperator(settings) as operator:
        operator.wait_ready()
        yield operator
    assert left_of_it(kubectl, NAMESPACE) == []


class TestKustomize:
    def test_a_job_runs(self, deployed: DeployedOperator, cluster: Path, namespace: str) -> None:
        run_the_example(cluster, namespace)
        assert "forbidden" not in deployed.log()

    def test_its_memory_when_it_is_idle(self, deployed: DeployedOperator, kubectl: Kubectl) -> None:
        """After the job of the test before: its workers have worked. docs/scaling.md has the figure."""
        samples = [memory(kubectl)]

        def is_idle() -> bool:
            time.sleep(2)
            samples.append(memory(kubectl))
            return abs(samples[-1] - samples[-2]) < 1

        until(is_idle)
        assert 0 < samples[-1] < IDLE_MEMORY, f"the operator's pod has {samples[-1]:.0f} MiB when idle"

    def test_the_pod_has_no_rights_that_it_does_not_need(self, deployed: DeployedOperator, kubectl: Kubectl) -> None:
        (pod,) = json.loads(kubectl.run("-n", NAMESPACE, "get", "pods", "-o", "json"))["items"]
        (container,) = pod["spec"]["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        labels = json.loads(kubectl.run("get", "namespace", NAMESPACE, "-o", "json"))["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        script = "id -u; touch /opt/ansible/x 2>&1; touch /tmp/x && echo written"
        said = kubectl.run("-n", NAMESPACE, "exec", f"deployment/{NAME}", "--", "sh", "-c", script)
        assert said.splitlines()[0] == "1001"
        assert "Read-only file system" in said
        assert said.rstrip().endswith("written")

    def test_the_image_has_the_compiled_shim(self, deployed: DeployedOperator, kubectl: Kubectl) -> None:
        """Outside the bridge it executes the real ansible-runner."""
        script = 'LC_ALL=C; exec "$DLJOB_SHIM/ansible-runner" --version 2>&1'
        said = kubectl.run("-n", NAMESPACE, "exec", f"deployment/{NAME}", "--", "sh", "-c", script)
        first, *_, last = said.splitlines()
        assert first == "ansible-runner: a cold run, DLJOB_RUNNER_SOCKET is not set"
        assert last[0].isdigit()

    @pytest.mark.parametrize(
        ("verb", "what", "allowed"),
        [
            ("create", "pods", True),
            ("patch", "mxjobs.kubeflow.org/status", True),
            ("patch", "mxjobs.kubeflow.org", True),  # the bridge's annotation
            ("update", "mxjobs.kubeflow.org", False),
            ("create", "mxjobs.kubeflow.org", False),
            ("get", "secrets", True),  # whose is the one that has the name of an MPIJob's?
            ("list", "secrets", False),
            ("update", "secrets", False),
            ("delete", "secrets", False),
            ("create", "pods/exec", False),
            ("update", "customresourcedefinitions.apiextensions.k8s.io", False),
            ("bind", "clusterroles.rbac.authorization.k8s.io", False),
        ],
    )
    def test_what_it_may(
        self, deployed: DeployedOperator, kubectl: Kubectl, verb: str, what: str, allowed: bool
    ) -> None:
        user = f"system:serviceaccount:{NAMESPACE}:{NAME}"
        resource, _, part = what.partition("/")
        said = kubectl.run(
            "auth", "can-i", verb, resource, f"--subresource={part}", "--as", user, "-n", "default", check=False
        )
        assert said.split()[0] == ("yes" if allowed else "no")

    def test_it_stops_on_sigterm_and_jobs_continue(
        self, deployed: DeployedOperator, kubectl: Kubectl, cluster: Path, namespace: str
    ) -> None:
        job = Cluster(cluster, namespace).create(v1_job("lasts"))
        job.wait_running()
        before = {p["metadata"]["uid"] for p in job.pods()}
        kubectl.run("-n", NAMESPACE, "rollout", "restart", f"deployment/{NAME}")
        deployed.wait_ready()
        assert {p["metadata"]["uid"] for p in job.pods()} == before
        job.delete()

    def test_a_missing_right_is_named(
        self, deployed: DeployedOperator, kubectl: Kubectl, cluster: Path, namespace: str
    ) -> None:
        role = json.loads(kubectl.run("get", "clusterrole", NAME, "-o", "json"))
        rules: list[dict[str, Any]] = role["rules"]
        number = next(i for i, rule in enumerate(rules) if rule["resources"] == ["pods"])
        path = f"/rules/{number}/verbs"
        less = [verb for verb in rules[number]["verbs"] if verb != "create"]
        here = Cluster(cluster, namespace)
        try:
            _patch(kubectl, [{"op": "replace", "path": path, "value": less}])
            job = here.create(v1_job("forbidden"))
            said = job.wait(lambda s: "forbidden" in s.get("reason", ""), "the reason", 60)["reason"]
            assert "cannot create resource" in said
            assert "add to the operator's role" in said
        finally:
            _patch(kubectl, [{"op": "replace", "path": path, "value": rules[number]["verbs"]}])
        job.wait_running()
        job.delete()


def _patch(kubectl: Kubectl, operations: list[dict[str, Any]]) -> None:
    kubectl.run("patch", "clusterrole", NAME, "--type=json", "-p", json.dumps(operations))


def unprivileged(job: dict[str, Any]) -> dict[str, Any]:
    """The same job with pods that a namespace of the level `restricted` takes, as the operator's own is."""
    for replica in job["spec"]["mxReplicaSpecs"].values():
        strict(replica["template"])
    return job


class TestNamespaced:
    """It sees its own namespace, and may see no other."""

    def test_a_job_beside_it_runs_and_one_elsewhere_is_left_alone(
        self, settings: Settings, kubectl: Kubectl, cluster: Path, namespace: str
    ) -> None:
        with DeployedOperator(settings, "namespaced") as operator:
            operator.wait_ready()
            elsewhere = Cluster(cluster, namespace).create(v1_job("elsewhere", scheduler="exit 0"))
            beside = Cluster(cluster, NAMESPACE).create(unprivileged(v1_job("beside", scheduler="exit 0")))
            assert beside.wait_end()["state"] == "Succeeded"
            assert elsewhere.status == {}
            assert elsewhere.pods() == []
            user = f"system:serviceaccount:{NAMESPACE}:{NAME}"
            for where, answer in ((NAMESPACE, "yes"), (namespace, "no")):
                said = kubectl.run("auth", "can-i", "list", "pods", "--as", user, "-n", where, check=False)
                assert said.split()[0] == answer, where
            # the one thing that no namespace has, and that it does without
            lines = unescaped(operator.log()).splitlines()
            denied = {line for line in lines if "forbidden" in line and '"nodes"' not in line}
            assert all('in the namespace "default"' in line for line in denied), denied
        assert left_of_it(kubectl, NAMESPACE) == []


class TestDevelopment:
    def test_a_job_runs_and_everything_is_logged(
        self, settings: Settings, kubectl: Kubectl, cluster: Path, namespace: str
    ) -> None:
        with DeployedOperator(settings, "development") as operator:
            operator.wait_ready()
            job = Cluster(cluster, namespace).create(v1_job("logged", scheduler="exit 0"))
            assert job.wait_end()["state"] == "Succeeded"
            # a new label on a pod triggers a reconcile, and one that finds nothing to do is logged only at this level
            pod = job.pod("scheduler")["metadata"]["name"]
            kubectl.run("-n", namespace, "label", "pod", pod, "touched=once")
            until(lambda: " DEBUG " in operator.log())
            log = operator.log()
            assert "ready: watching" in log, "the embedded engine"
            assert "forbidden" not in log
        assert left_of_it(kubectl, NAMESPACE) == []


class TestHelm:
    """After kustomize's: one operator at a time."""

    def run(self, helm: Path, kubectl: Kubectl, *arguments: str) -> str:
        done = subprocess.run(
            [helm, *arguments], env=kubectl.environ, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{kubectl.describe('dljob-helm')}"
        return done.stdout

    def pods(self, kubectl: Kubectl, *selection: str) -> set[str]:
        return set(kubectl.run("get", "pods", *selection, "-o", "name").split())

    def test_install_run_upgrade_and_uninstall(
        self, helm: Path, kubectl: Kubectl, cluster: Path, namespace: str
    ) -> None:
        kubectl.run("delete", "--ignore-not-found", "-k", ROOT / "crds")  # Helm adopts none that are there already
        release = ("dljob-operator", "--namespace", "dljob-helm")
        settings = (
            "--set",
            "engine=dljob-operator,crds.keep=false,image.pullPolicy=Always,metrics.enabled=true",
            "--wait",
            "--timeout",
            "5m",
        )
        try:
            self.run(helm, kubectl, "install", *release, str(CHART), "--create-namespace", *settings)
            run_the_example(cluster, namespace)
            own = ("-n", "dljob-helm", "--selector", f"app.kubernetes.io/name={NAME}")
            logs = ("logs", *own, "--tail=-1")
            assert "forbidden" not in kubectl.run(*logs)
            service = f"/api/v1/namespaces/dljob-helm/services/{NAME}-metrics:metrics/proxy/metrics"
            counted = f'dljob_jobs_succeeded_total{{kind="kubeflow.org/v1 MXJob",namespace="{namespace}"}} 1.0'
            assert counted in kubectl.run("get", "--raw", service)
            self.run(helm, kubectl, "test", *release, "--timeout", "5m")
            # with a second one that stands by: ready is what both must be
            standby = "concurrency=2,leaderElection.enabled=true,replicas=2"
            before = self.pods(kubectl, *own)
            self.run(helm, kubectl, "upgrade", *release, str(CHART), *settings, "--set", standby)
            until(lambda: not before & self.pods(kubectl, *own), 60)  # helm waits only for the new ones
            said = kubectl.run(*logs, "--prefix")
            assert len({line.partition("]")[0] for line in said.splitlines()}) == 2, "of both"
            assert "forbidden" not in said
            # the leader of the two takes reports of progress, and after its end the other one
            before = self.pods(kubectl, *own)
            self.run(helm, kubectl, "upgrade", *release, str(CHART), *settings, "--set", f"{standby},progress=on")
            until(lambda: not before & self.pods(kubectl, *own), 60)
            leader = ("-n", "dljob-helm", "--selector", "dljob.operator/serves-progress=true")
            job = Cluster(cluster, namespace).create(reporting_job())
            job.wait(lambda s: s.get("trainerStatus", {}).get("progressPercentage") == 10, "its first report")
            first = self.pods(kubectl, *leader)
            assert len(first) == 1
            kubectl.run("delete", "pod", *leader)
            job.release("master")
            status = job.wait_end()
            assert (status["state"], status["trainerStatus"]["progressPercentage"]) == ("Succeeded", 100)
            second = self.pods(kubectl, *leader)
            assert len(second) == 1 and not first & second
            assert "forbidden" not in kubectl.run(*logs)
        finally:
            self.run(helm, kubectl, "uninstall", *release, "--ignore-not-found", "--wait")
            kubectl.run("delete", "namespace", "dljob-helm", "--ignore-not-found")
        assert left_of_it(kubectl, "dljob-helm") == []
