"""The jobs that are explored: small ones of each family, built from the declarations of the roles."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.builders import (
    CAFFE2,
    MXNET,
    PYTORCH,
    TENSORFLOW,
    Framework,
    Resource,
    caffe2job,
    echo_framework,
    echojob,
    grouped,
    mxjob,
    pytorchjob,
    tfjob,
)
from support.stability.state import Spec

ECHO_IN_ORDER = echo_framework(
    replica_types={"Leader": {"minimum": 1, "maximum": 1}, "Follower": {"starts_after": {"Leader": "ready"}}}
)
"""The only framework with a start order: no role declares one."""


@dataclass(frozen=True)
class Scenario:
    """A job with the edits that its tenants may make."""

    name: str
    family: str
    framework: Framework
    resource: Resource
    scaled: str = "Worker"
    """The replica type that tenants scale."""
    sizes: tuple[int, int] = (1, 2)
    edited_run_policy: Mapping[str, Any] = field(default_factory=dict)
    """Fields that tenants set and reset."""

    def manifest(self, spec: Spec) -> Resource:
        """The job as its tenants have edited it, without generation and status."""
        made = copy.deepcopy(self.resource)
        for type_, entry in _entries(made["spec"]):
            if spec.version and "template" in entry:
                entry["template"]["spec"]["containers"][0]["image"] = "train:2"
            if type_ in ("", self.scaled.upper()):
                entry["replicas"] = self.sizes[spec.size]
        if spec.policy:
            made["spec"].setdefault("runPolicy", {}).update(copy.deepcopy(dict(self.edited_run_policy)))
        if spec.suspend:
            made["spec"].setdefault("runPolicy", {})["suspend"] = True
        return made

    @property
    def can_suspend(self) -> bool:
        return isinstance(self.resource["spec"], dict)

    @property
    def has_autoscaler(self) -> bool:
        spec = self.resource["spec"]
        return isinstance(spec, dict) and "metrics" in spec.get("elasticPolicy", {})

    def is_long_running(self, type_: str) -> bool:
        found = self.framework.type_named(type_)
        return found is not None and found.long_running


def _entries(spec: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The replica specs by type in upper case, "" for the only type of Caffe2."""
    holders = spec.items() if isinstance(spec, dict) else [("replicaSpecs", spec)]
    (found,) = (value for name, value in holders if name.lower().endswith("replicaspecs"))
    if isinstance(found, list):
        for entry in found:
            yield next(str(text) for name, text in entry.items() if name.lower().endswith("replicatype")), entry
    elif "template" in found:
        yield "", found
    else:
        for type_, entry in found.items():
            yield type_.upper(), entry


def _with(resource: Resource, policy: str = "", **run_policy: Any) -> Resource:
    """The job with a restart policy of all its replicas, and fields of its runPolicy."""
    made = copy.deepcopy(resource)
    for _, entry in _entries(made["spec"]) if policy else ():
        if isinstance(made["spec"], list) or "tfReplicaType" in entry or made["kind"] == "Caffe2Job":
            if "template" in entry:
                entry["template"]["spec"]["restartPolicy"] = policy
        else:
            entry["restartPolicy"] = policy
    if run_policy:
        made["spec"].setdefault("runPolicy", {}).update(run_policy)
    return made


def _tf_list(**counts: int) -> Resource:
    return tfjob("kubeflow.org/v1alpha1", **counts)


def _tf_map(**counts: int) -> Resource:
    return tfjob("kubeflow.org/v1", "tfReplicaSpecs", **counts)


def _mx(flavor: str, policy: str, **run_policy: Any) -> Resource:
    made = mxjob().flavor(flavor).servers(1).workers(1).restart(policy)
    return (made.run_policy(**run_policy) if run_policy else made).resource()


DISRUPTION = {"onPodConditions": [{"type": "DisruptionTarget"}]}
OUT_OF_MEMORY = {"onTerminationReasons": {"operator": "In", "values": ["OOMKilled"]}}
METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def on_code(*values: int, operator: str = "In") -> Resource:
    return {"onExitCodes": {"operator": operator, "values": list(values)}}


def rules(*entries: tuple[str, Resource]) -> Resource:
    """A podFailurePolicy of actions with their requirements."""
    return {"rules": [{"action": action, **copy.deepcopy(requirement)} for action, requirement in entries]}


def depends(type_: str, **conditions: str) -> Resource:
    """A startupPolicy: ``type_`` waits for other types."""
    return {"dependsOn": {type_: [{"replicaType": name, "condition": one} for name, one in conditions.items()]}}


IN_ORDER = {"startupPolicyOrder": "InOrder"}
OFTEN = {"count": 1, "seconds": 300}


def _elastic(worker: int, **policy: Any) -> Resource:
    return pytorchjob(worker=worker, elasticPolicy={"minReplicas": 1, "maxReplicas": 2, **policy})


Family = tuple[Framework, Mapping[str, Resource]]


def _failure_rules() -> Mapping[str, Family]:
    """runPolicy.podFailurePolicy with each action and each requirement, maxRestartsPerReplica and restartsWithin."""
    restart_job = rules(("RestartJob", on_code(137)), ("Restart", on_code(1)), ("RestartJob", DISRUPTION))
    single = rules(("Ignore", on_code(137)), ("Restart", on_code(1)))
    dynamic = _tf_map(worker=1)
    dynamic["spec"]["enableDynamicWorker"] = True
    return {
        "failure rules, mxnet": (
            MXNET,
            {
                "ignore, restart": _mx("v1", "Never", cleanPodPolicy="Running", podFailurePolicy=single),
                "restart job": _mx("v1", "Never", cleanPodPolicy="Running", podFailurePolicy=restart_job),
                "restart job, backoff 2": _mx(
                    "v1alpha1", "OnFailure", backoffLimit=2, maxRestartsPerReplica=1, podFailurePolicy=restart_job
                ),
                "whole job": _mx(
                    "v1",
                    "ExitCode",
                    restartScope="Job",
                    backoffLimit=1,
                    podFailurePolicy=rules(("Ignore", on_code(137)), ("Count", DISRUPTION), ("RestartJob", on_code(1))),
                ),
                "replica limit": _mx("v1", "ExitCode", maxRestartsPerReplica=1, cleanPodPolicy="All"),
                "restarts within": _mx("v1", "ExitCode", restartsWithin=OFTEN, cleanPodPolicy="Running"),
                "restarts within, whole job": _mx("v1", "OnFailure", restartsWithin=OFTEN, restartScope="Job"),
            },
        ),
        "failure rules, tensorflow": (
            TENSORFLOW,
            {
                "fail job, ignore, count": _with(
                    _tf_map(chief=1, worker=1),
                    "ExitCode",
                    cleanPodPolicy="Running",
                    podFailurePolicy=rules(
                        ("FailJob", DISRUPTION), ("Ignore", OUT_OF_MEMORY), ("Count", on_code(1, operator="NotIn"))
                    ),
                ),
                "count a drain, replica limit": _with(
                    _tf_list(master=1, worker=1),
                    "OnFailure",
                    maxRestartsPerReplica=1,
                    podFailurePolicy=rules(("Count", DISRUPTION), ("FailJob", OUT_OF_MEMORY)),
                ),
                "elastic, restart and ignore": _with(
                    dynamic,
                    "Never",
                    maxRestartsPerReplica=1,
                    cleanPodPolicy="All",
                    podFailurePolicy=rules(("Restart", DISRUPTION), ("Restart", on_code(137)), ("Ignore", on_code(1))),
                ),
            },
        ),
        "failure rules, pytorch": (
            PYTORCH,
            {
                "restart job, ttl": _with(
                    pytorchjob(1, 1),
                    "OnFailure",
                    ttlSecondsAfterFinished=20,
                    cleanPodPolicy="All",
                    podFailurePolicy=rules(("RestartJob", OUT_OF_MEMORY), ("Ignore", DISRUPTION)),
                ),
                "elastic, restart job": _with(
                    _elastic(1),
                    "Never",
                    cleanPodPolicy="Running",
                    podFailurePolicy=rules(("RestartJob", on_code(137)), ("FailJob", OUT_OF_MEMORY)),
                ),
                "restarts within, then the job": _with(
                    pytorchjob(1, 1), "OnFailure", restartsWithin={**OFTEN, "action": "RestartJob"}
                ),
                "elastic, restarts within": _with(
                    _elastic(1), "ExitCode", restartsWithin={**OFTEN, "action": "RestartJob"}, cleanPodPolicy="All"
                ),
                "replica limit 0, in place": _with(pytorchjob(1, 1), "OnFailure", maxRestartsPerReplica=0),
            },
        ),
    }


def _startup_policies() -> Mapping[str, Family]:
    """runPolicy.startupPolicy: in order, and after each condition."""
    restart_job = rules(("RestartJob", on_code(137)), ("RestartJob", DISRUPTION))
    after_ps = {**depends("Worker", PS="Running"), "startupPolicyOrder": "AnyOrder"}
    return {
        "startup policy": (
            MXNET,
            {
                "in order": _mx("v1", "ExitCode", startupPolicy=IN_ORDER, cleanPodPolicy="Running"),
                "in order, restart job": _mx("v1", "Never", startupPolicy=IN_ORDER, podFailurePolicy=restart_job),
                "in order, whole job": _mx("v1alpha1", "Never", startupPolicy=IN_ORDER, restartScope="Job"),
            },
        ),
        "startup policy, tensorflow": (
            TENSORFLOW,
            {"worker after running PS": _with(_tf_map(ps=1, worker=1), "ExitCode", startupPolicy=after_ps)},
        ),
        "startup policy, pytorch": (
            PYTORCH,
            {
                "master after the workers have completed": _with(
                    pytorchjob(1, 1), "OnFailure", startupPolicy=depends("Master", Worker="Complete")
                )
            },
        ),
    }


def _replica_groups() -> Mapping[str, Family]:
    """Worker 0 has a template of its own, which the tenants do not edit."""
    return {
        "replica groups": (
            PYTORCH,
            {
                "exit code": _with(_grouped(pytorchjob(1, 1)), "ExitCode", cleanPodPolicy="Running"),
                "elastic": _with(_grouped(_elastic(1)), "ExitCode", backoffLimit=1, cleanPodPolicy="All"),
                "restart job": _with(
                    _grouped(pytorchjob(1, 1)), "Never", podFailurePolicy=rules(("RestartJob", on_code(137)))
                ),
                "whole job": _with(_grouped(pytorchjob(1, 1)), "OnFailure", restartScope="Job"),
            },
        )
    }


def _grouped(resource: Resource) -> Resource:
    return grouped(resource, "Worker", large=(1, {"image": "large:1"}))


def _families() -> Mapping[str, Family]:
    tensorboard = _tf_list(master=1, worker=1)
    tensorboard["spec"]["tensorboard"] = {"logDir": "/logs"}
    dynamic = _tf_map(worker=1)
    dynamic["spec"]["enableDynamicWorker"] = True
    dynamic_chief = _tf_map(chief=1, worker=1)
    dynamic_chief["spec"]["enableDynamicWorker"] = True
    all_workers = _tf_map(worker=1)
    all_workers["spec"]["successPolicy"] = "AllWorkers"
    return {
        "tensorflow list": (
            TENSORFLOW,
            {
                "parameter server": _tf_list(master=1, ps=1),
                "never, backoff 1": _with(_tf_list(master=1, worker=1), "Never", backoffLimit=1),
                "on failure, backoff 0, all": _with(
                    _tf_list(master=1, ps=1, worker=1), "OnFailure", backoffLimit=0, cleanPodPolicy="All"
                ),
                "tensorboard": tensorboard,
            },
        ),
        "tensorflow map": (
            TENSORFLOW,
            {
                "exit code": _with(_tf_map(chief=1, worker=1), "ExitCode", cleanPodPolicy="Running"),
                "exit code, backoff 1, ttl": _with(
                    _tf_map(chief=1, ps=1, worker=1),
                    "ExitCode",
                    backoffLimit=1,
                    ttlSecondsAfterFinished=20,
                    cleanPodPolicy="All",
                ),
                "all workers": _with(all_workers, "ExitCode", cleanPodPolicy="Running"),
                "always": _with(_tf_map(worker=1), "Always", cleanPodPolicy="All"),
                "whole job": _with(
                    _tf_map(chief=1, worker=1), "ExitCode", restartScope="Job", cleanPodPolicy="Running"
                ),
                "whole job, backoff 1": _with(_tf_map(worker=1), "OnFailure", restartScope="Job", backoffLimit=1),
            },
        ),
        "tensorflow elastic": (
            TENSORFLOW,
            {
                "workers": _with(dynamic, "ExitCode", cleanPodPolicy="Running"),
                "chief": _with(dynamic_chief, "ExitCode", cleanPodPolicy="All"),
            },
        ),
        "mxnet": (
            MXNET,
            {
                "v1, exit code": _mx("v1", "ExitCode", cleanPodPolicy="Running"),
                "v1, exit code, deadline": _mx("v1", "ExitCode", activeDeadlineSeconds=50, cleanPodPolicy="All"),
                "v1alpha1, on failure": _mx("v1alpha1", "OnFailure"),
                "v1alpha1, never, backoff 1": _mx("v1alpha1", "Never", backoffLimit=1, cleanPodPolicy="All"),
                "v1alpha1, whole job": _mx("v1alpha1", "Never", restartScope="Job"),
                "mpba": _mx("mpba", "Never"),
            },
        ),
        "caffe2": (
            CAFFE2,
            {
                "never": caffe2job(1),
                "on failure, ttl": _with(caffe2job(1), "OnFailure", ttlSecondsAfterFinished=20, cleanPodPolicy="All"),
                "exit code, backoff 1": _with(caffe2job(1), backoffLimit=1, cleanPodPolicy="Running"),
            },
        ),
        "pytorch": (
            PYTORCH,
            {
                "on failure": pytorchjob(1, 1),
                "exit code, ttl": _with(
                    pytorchjob(1, 1), "ExitCode", ttlSecondsAfterFinished=20, cleanPodPolicy="Running"
                ),
                "workers, exit code, backoff 0": _with(
                    pytorchjob(worker=1), "ExitCode", backoffLimit=0, cleanPodPolicy="All"
                ),
                "whole job": _with(pytorchjob(1, 1), "ExitCode", restartScope="Job", cleanPodPolicy="All"),
            },
        ),
        "pytorch elastic": (
            PYTORCH,
            {
                "exit code": _with(_elastic(1), "ExitCode", cleanPodPolicy="Running"),
                "never, backoff 1": _with(_elastic(1), "Never", backoffLimit=1, cleanPodPolicy="All"),
                "metrics": _with(_elastic(1, metrics=[METRIC]), "ExitCode"),
                "metrics, all": _with(_elastic(1, metrics=[METRIC]), "Never", backoffLimit=1, cleanPodPolicy="All"),
            },
        ),
        **_failure_rules(),
        **_startup_policies(),
        **_replica_groups(),
        "start order": (ECHO_IN_ORDER, {"never": echojob(1), "exit code": _with(echojob(1), "ExitCode")}),
    }


EDITED = {
    "failure rules, mxnet: restart job": {
        "podFailurePolicy": rules(("Ignore", on_code(137)), ("RestartJob", on_code(1)), ("Count", DISRUPTION))
    },
    "failure rules, mxnet: replica limit": {"maxRestartsPerReplica": 0},
    "failure rules, mxnet: restarts within": {"restartsWithin": {**OFTEN, "count": 0, "action": "RestartJob"}},
    "failure rules, tensorflow: fail job, ignore, count": {"podFailurePolicy": rules(("Restart", DISRUPTION))},
    "startup policy: in order": {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}},
    "startup policy, pytorch: master after the workers have completed": {"startupPolicy": {}},
}
"""Fields of the runPolicy that tenants set and reset, by the name of the scenario."""

SCENARIOS: tuple[Scenario, ...] = tuple(
    Scenario(
        name := f"{family}: {title}",
        family,
        framework,
        resource,
        "Follower" if family == "start order" else "Worker",
        edited_run_policy=EDITED.get(name, {}),
    )
    for family, (framework, jobs) in _families().items()
    for title, resource in jobs.items()
)
