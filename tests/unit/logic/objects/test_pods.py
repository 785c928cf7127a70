"""Building a replica's pod from the user's template."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import PodContext, build_pod
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import PodToCreate
from support.builders import MXNET, UID, echo_framework_of_flavor, echojob, environment_of, manifest_of, mxjob
from support.upstream_manifests import from_each_source, load

FLAVORS = ("v1", "v1alpha1", "fioravanzo", "mpba")
TEMPLATED = "{{ lookup('pipe', 'id') }} {% raw %} {index} {job}"


def container_of(pod: dict[str, Any], name: str = "mxnet") -> dict[str, Any]:
    return next(c for c in pod["spec"]["containers"] if c["name"] == name)


# --- metadata


def test_owner() -> None:
    pod = manifest_of(mxjob("digits").v1alpha1().job(), "scheduler")
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "kubeflow.org/v1alpha1",
            "kind": "MXJob",
            "name": "digits",
            "uid": UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert pod["metadata"]["namespace"] == "default"


def test_own_labels() -> None:
    labels = manifest_of(mxjob().v1().workers(3).job(), "worker", 2, 4)["metadata"]["labels"]
    assert {k: v for k, v in labels.items() if "dljob" in v or k.startswith("dljob")} == {
        "app.kubernetes.io/managed-by": "dljob-operator",
        "dljob.operator/job-uid": UID,
        "dljob.operator/replica-type": "worker",
        "dljob.operator/replica-index": "2",
        "dljob.operator/attempt": "4",
    }


@pytest.mark.parametrize(("flavor", "group"), [("fioravanzo", "fioravanzo.org"), ("v1alpha1", "kubeflow.org")])
def test_labels_of_v1alpha1(flavor: str, group: str) -> None:
    job = mxjob("digits").flavor(flavor).servers(2).option(RuntimeId="76no").job()
    labels = manifest_of(job, "server", 1)["metadata"]["labels"]
    assert (
        labels.items()
        >= {
            group: "",
            "job_type": "SERVER",
            "runtime_id": "76no",
            "mx_job_name": "digits",
            "task_index": "1",
        }.items()
    )


def test_labels_of_v1_mark_the_chief() -> None:
    job = mxjob("digits").v1().workers(1).job()
    labels = manifest_of(job, "scheduler")["metadata"]["labels"]
    assert (
        labels.items()
        >= {
            "training.kubeflow.org/operator-name": "mxjob-controller",
            "training.kubeflow.org/job-name": "digits",
            "training.kubeflow.org/replica-type": "scheduler",
            "training.kubeflow.org/replica-index": "0",
            "training.kubeflow.org/job-role": "master",
        }.items()
    )
    assert "training.kubeflow.org/job-role" not in manifest_of(job, "worker")["metadata"]["labels"]


def test_metadata_of_the_template_is_kept_and_the_operators_takes_precedence() -> None:
    job = (
        mxjob()
        .v1alpha1()
        .template_metadata(
            "Scheduler",
            labels={"team": "vision", "dljob.operator/job-uid": "forged"},
            annotations={"sidecar.istio.io/inject": "false"},
            finalizers=["example.com/keep"],
            name="ignored",
        )
    )
    metadata = manifest_of(job.job(), "scheduler")["metadata"]
    assert metadata["labels"]["team"] == "vision"
    assert metadata["labels"]["dljob.operator/job-uid"] == UID
    assert metadata["annotations"]["sidecar.istio.io/inject"] == "false"
    assert metadata["finalizers"] == ["example.com/keep"]
    assert metadata["name"].startswith("scheduler-")


# --- the network


def test_hostname_and_subdomain_are_its_address() -> None:
    job = mxjob().v1alpha1().option(RuntimeId="76no").job()
    spec = manifest_of(job, "scheduler")["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("scheduler-76no-0", "mxjob-76no")
    assert "dnsConfig" not in spec


def test_v1_short_names_resolve_through_a_search_path() -> None:
    dns = {"options": [{"name": "ndots", "value": "2"}], "searches": ["corp.example"]}
    job = mxjob("digits").v1().option(RuntimeId="76no").pod("Scheduler", dnsConfig=dns).job()
    spec = manifest_of(job, "scheduler")["spec"]
    assert spec["hostname"] == "digits-scheduler-0"
    assert spec["dnsConfig"] == {**dns, "searches": ["corp.example", "mxjob-76no.default.svc.cluster.local"]}


def test_v1_search_path_in_another_domain() -> None:
    job = mxjob().v1().option(RuntimeId="76no").job()
    context = PodContext(MXNET, build_cluster_spec(job, MXNET), spec_hashes(job), "example.internal")
    pod = build_pod(job, PodToCreate(job.groups[0], 0, 0), context)
    assert pod["spec"]["dnsConfig"]["searches"] == ["mxjob-76no.default.svc.example.internal"]


def test_on_the_hosts_network_it_asks_the_clusters_resolver() -> None:
    job = mxjob().v1().pod("Scheduler", hostNetwork=True).job()
    assert manifest_of(job, "scheduler")["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    job = mxjob().v1().pod("Scheduler", hostNetwork=True, dnsPolicy="Default").job()
    assert manifest_of(job, "scheduler")["spec"]["dnsPolicy"] == "Default"


def test_on_the_hosts_network_no_port_is_added() -> None:
    job = mxjob().v1().pod("Scheduler", hostNetwork=True).job()
    assert "ports" not in container_of(manifest_of(job, "scheduler"))


# --- the containers


def test_v1_adds_the_named_port() -> None:
    job = mxjob().v1().container("Scheduler", ports=[{"containerPort": 80}]).job()
    assert container_of(manifest_of(job, "scheduler"))["ports"] == [
        {"containerPort": 80},
        {"name": "mxjob-port", "containerPort": 9091},
    ]


def test_v1_leaves_a_port_of_that_name_alone() -> None:
    ports = [{"name": "mxjob-port", "containerPort": 7777}]
    assert (
        container_of(manifest_of(mxjob().v1().container("Scheduler", ports=ports).job(), "scheduler"))["ports"] == ports
    )


@pytest.mark.parametrize("flavor", ["v1alpha1", "fioravanzo", "mpba"])
def test_others_add_no_port(flavor: str) -> None:
    assert "ports" not in container_of(manifest_of(mxjob().flavor(flavor).job(), "scheduler"))


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_containers_own_variables_are_kept(flavor: str) -> None:
    own: list[dict[str, Any]] = [{"name": f"OWN_{n}", "value": str(n)} for n in range(7)]
    own += [{"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s"}}}]
    ours = [{"name": "DMLC_PS_ROOT_PORT", "value": "1"}]
    pod = manifest_of(mxjob().flavor(flavor).container("Scheduler", env=[*own, *ours]).job(), "scheduler")
    env = container_of(pod)["env"]
    assert env[-len(own) :] == own, "after ours, so that they may refer to ours"
    assert [e["name"] for e in env].count("DMLC_PS_ROOT_PORT") == 1
    assert environment_of(pod)["DMLC_PS_ROOT_PORT"] != "1"
    assert environment_of(pod)["DMLC_ROLE"] == "scheduler"


def test_malformed_variables_are_passed_on_to_kubernetes() -> None:
    own = [{"name": None, "value": "b"}, {"value": "c"}]
    assert container_of(manifest_of(mxjob().container("Scheduler", env=own).job(), "scheduler"))["env"][-2:] == own


@pytest.mark.parametrize(("flavor", "reached"), [("v1", True), ("v1alpha1", False), ("fioravanzo", False)])
def test_environment_of_the_other_containers(flavor: str, reached: bool) -> None:
    both = [{"name": "logger", "image": "log:1"}, {"name": "mxnet", "image": "train:1"}]
    job = mxjob().flavor(flavor).pod("Scheduler", containers=both, initContainers=[{"name": "init"}]).job()
    pod = manifest_of(job, "scheduler")
    assert ("DMLC_ROLE" in environment_of(pod, "logger")) == reached
    assert environment_of(pod, "mxnet")["DMLC_ROLE"] == "scheduler"
    assert "env" not in pod["spec"]["initContainers"][0]


def test_the_end_of_a_containers_log_is_in_the_pods_status() -> None:
    job = mxjob().v1().container("Scheduler", terminationMessagePolicy="File")
    job.pod("Scheduler", initContainers=[{"name": "fetch", "image": "x"}])
    spec = manifest_of(job.workers(1).job(), "scheduler")["spec"]
    assert spec["containers"][0]["terminationMessagePolicy"] == "File", "as the template has it"
    assert spec["initContainers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
    (worker,) = manifest_of(job.job(), "worker")["spec"]["containers"]
    assert worker["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_administrator_may_keep_logs_out_of_the_pods_status() -> None:
    secret = dataclasses.replace(MXNET, termination_message_policy="File")
    job = mxjob().v1().workers(1).container("Scheduler", terminationMessagePolicy="FallbackToLogsOnError").job()
    (worker,) = manifest_of(job, "worker", framework=secret)["spec"]["containers"]
    assert worker["terminationMessagePolicy"] == "File"
    (scheduler,) = manifest_of(job, "scheduler", framework=secret)["spec"]["containers"]
    assert scheduler["terminationMessagePolicy"] == "FallbackToLogsOnError", "unless the job's own template asks for it"


@pytest.mark.parametrize(
    ("policy", "in_the_pod"),
    [("Always", "Always"), ("OnFailure", "OnFailure"), ("Never", "Never"), ("ExitCode", "Never")],
)
def test_restart_policy(policy: str, in_the_pod: str) -> None:
    assert manifest_of(mxjob().v1().restart(policy).job(), "scheduler")["spec"]["restartPolicy"] == in_the_pod


def test_the_kubelet_restarts_no_replica_of_a_job_that_restarts_as_a_whole() -> None:
    job = mxjob().v1().restart("OnFailure").run_policy(restartScope="Job").job()
    assert manifest_of(job, "scheduler")["spec"]["restartPolicy"] == "Never"


def test_scheduler_and_priority_where_the_template_has_none() -> None:
    job = mxjob().v1().workers(1).option(schedulerName="volcano").run_policy(schedulingPolicy={"priorityClass": "high"})
    job.pod("Worker", schedulerName="own", priorityClassName="low")
    made = job.job()
    assert [manifest_of(made, t)["spec"]["schedulerName"] for t in ("scheduler", "worker")] == ["volcano", "own"]
    assert [manifest_of(made, t)["spec"]["priorityClassName"] for t in ("scheduler", "worker")] == ["high", "low"]


def test_environment_of_services_is_off_unless_asked_for() -> None:
    assert manifest_of(mxjob().job(), "scheduler")["spec"]["enableServiceLinks"] is False
    job = mxjob().pod("Scheduler", enableServiceLinks=True).job()
    assert manifest_of(job, "scheduler")["spec"]["enableServiceLinks"] is True


# --- the template is not changed


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_template_is_not_touched(flavor: str) -> None:
    resource = (
        mxjob().flavor(flavor).container("Scheduler", env=[{"name": "A"}], ports=[{"containerPort": 1}]).resource()
    )
    before = copy.deepcopy(resource)
    job = parse_job(resource, MXNET)
    first = manifest_of(job, "scheduler")
    assert resource == before
    assert manifest_of(job, "scheduler") == first, "building it changes nothing"


@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_in_a_template_is_templated(flavor: str) -> None:
    job = (
        mxjob()
        .flavor(flavor)
        .container("Scheduler", args=[TEMPLATED], env=[{"name": "X", "value": TEMPLATED}], workingDir=TEMPLATED)
        .template_metadata("Scheduler", annotations={"note": TEMPLATED}, labels={"l": TEMPLATED})
        .job()
    )
    pod = manifest_of(job, "scheduler")
    container = container_of(pod)
    assert container["args"] == [TEMPLATED]
    assert container["workingDir"] == TEMPLATED
    assert environment_of(pod)["X"] == TEMPLATED
    assert pod["metadata"]["annotations"]["note"] == TEMPLATED
    assert pod["metadata"]["labels"]["l"] == TEMPLATED


def test_declared_labels_with_placeholders() -> None:
    labels = {"always": "", "index": "{index}", "role": "{role}"}
    framework = echo_framework_of_flavor(labels=labels)
    job = parse_job(echojob(1), framework)
    assert (
        manifest_of(job, "Leader", framework=framework)["metadata"]["labels"].items()
        >= {
            "always": "",
            "index": "0",
            "role": "master",
        }.items()
    )
    follower = manifest_of(job, "Follower", framework=framework)["metadata"]["labels"]
    assert "role" not in follower
    assert follower["always"] == ""


@pytest.mark.parametrize("path", from_each_source("mxjob-cifar-gpu.yaml"))
def test_the_gpu_manifest_yields_the_limit_and_the_volume(path: Path) -> None:
    asked = load(path)["spec"]["replicaSpecs"][-1]["template"]["spec"]
    job = parse_job(load(path), MXNET)
    spec = manifest_of(job, "worker")["spec"]
    (container,) = spec["containers"]
    assert container["resources"] == {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}
    assert container["volumeMounts"] == asked["containers"][0]["volumeMounts"]
    assert spec["volumes"] == asked["volumes"]
    assert "resources" not in manifest_of(job, "server")["spec"]["containers"][0]
