"""Filter for the status of a job, computed from its pods."""

from __future__ import annotations

DOCUMENTATION = r"""
name: job_status
short_description: Status of a distributed job, aggregated from its pods
version_added: 0.2.0
description:
  - Counts the replicas of a job by type and state, and derives the job's state, conditions and failure, as the operator
    would report them for these pods. The plan of M(dljob.operator.reconcile) computes both, so restart policies, exit
    codes, success policies and C(runPolicy) apply.
  - Reads nothing from the cluster and writes nothing. It works on pods that an earlier task has read, and on a job that
    has no status yet.
  - What the job's status has already recorded counts too. A finished job keeps its outcome and its counts, also when
    its pods have been deleted; conditions keep their times. Without a status, the pods alone decide.
  - A pod of an older spec counts as missing, since the operator replaces it. The replica is pending.
  - A job that another controller manages (C(runPolicy.managedBy)) has the status that its controller wrote.
  - Fails with all validation errors where the job is not valid.
positional: _input, job, framework
options:
  _input:
    description:
      - Pods, as M(kubernetes.core.k8s_info) returns them in C(resources).
      - A pod belongs to the job whose uid is in its C(ownerReferences). A pod without any belongs to the job that its
        label C(dljob.operator/job-uid) names. Pods of other jobs are ignored, so the list may hold the pods of a whole
        namespace.
    type: list
    elements: dict
    required: true
  job:
    description:
      - The job, with or without C(status), as the cluster has it or as its author wrote it.
      - Without C(metadata.uid), its pods are those of a job of this group, kind and name, in the manifest's namespace
        if it names one. Pods without C(ownerReferences) are found by the labels that carry the job's name. Pods of
        several such jobs are an error.
    type: dict
    required: true
  framework:
    description:
      - The framework's declaration, as C(roles/<name>/vars/main.yml) has it and M(dljob.operator.reconcile) takes it,
        or the name of a role of this collection, such as V(mxnet). Its C(environment) is not used.
    type: raw
    required: true
  now:
    description:
      - The time of the status (RFC 3339), for C(activeDeadlineSeconds) and for the conditions that are new. The current
        time where it is not given.
    type: str
"""

EXAMPLES = r"""
- name: Read the job
  kubernetes.core.k8s_info:
    api_version: kubeflow.org/v1
    kind: MXJob
    namespace: default
    name: digits
  register: jobs

- name: Read the pods of the namespace
  kubernetes.core.k8s_info:
    kind: Pod
    namespace: default
  register: pods

- name: Show how many of its workers run
  ansible.builtin.debug:
    msg: "{{ workers.active }} of {{ workers.desired }} workers run"
  vars:
    status: "{{ pods.resources | dljob.operator.job_status(jobs.resources[0], 'mxnet') }}"
    workers: "{{ status.replicaStatuses.Worker }}"

- name: Stop if a job of another framework has failed, and show why
  ansible.builtin.assert:
    that: not status.failure
    fail_msg: "{{ status.failure }}"
  vars:
    status: "{{ pods.resources | dljob.operator.job_status(job, echo_framework) }}"
    job: "{{ lookup('ansible.builtin.file', 'job.yaml') | from_yaml }}"
"""

RETURN = r"""
_value:
  description: The status, with the same keys for every flavor.
  type: dict
  contains:
    state:
      description:
        - V(Succeeded) or V(Failed) once the job is over. Before that, the newest condition that is true (a job of a v1
          flavor) or V(Running) (v1alpha1).
      type: str
      returned: always
    phase:
      description:
        - V(Creating), V(Running), V(CleanUp), V(Done) or V(Failed). A job that has ended is in V(CleanUp), unless
          C(cleanPodPolicy) is V(None), until its status has recorded that the operator has deleted what was left.
      type: str
      returned: always
    reason:
      description: What keeps a pod from running, or why the job failed. Empty otherwise.
      type: str
      returned: always
    replicaStatuses:
      description: Counts by replica type. The last four add up to the first.
      type: dict
      returned: always
      contains:
        desired: {description: Replicas that the job asks for., type: int, returned: always}
        active: {description: Replicas that run., type: int, returned: always}
        succeeded: {description: Replicas that have succeeded., type: int, returned: always}
        failed: {description: Replicas whose pod has failed., type: int, returned: always}
        pending: {description: Replicas whose pod is missing or has not started., type: int, returned: always}
      sample: {Worker: {desired: 2, active: 1, succeeded: 0, failed: 0, pending: 1}}
    conditions:
      description:
        - The conditions, the newest last, of the types Created, Running, Restarting, Suspended, Succeeded and Failed.
          Each has C(type), C(status), C(reason), C(message), C(lastUpdateTime) and C(lastTransitionTime).
      type: list
      elements: dict
      returned: always
    failure:
      description: Why the job failed. Empty for a job that has not.
      type: dict
      returned: always
      contains:
        pod: {description: "The pod that failed, empty if it was none.", type: str, returned: on failure}
        container: {description: "The container that failed, empty if it was none.", type: str, returned: on failure}
        exitCode: {description: "The exit code of the container, or none.", type: int, returned: on failure}
        reason: {description: "Such as V(Error), V(OOMKilled) or V(DeadlineExceeded).", type: str, returned: on failure}
        message: {description: All of it in a sentence., type: str, returned: on failure}
        log:
          description:
            - The termination message of the container or the end of its log, or Kubernetes' message about the pod.
              Empty if there is none.
          type: str
          returned: on failure
  sample:
    state: Running
    phase: Running
    reason: ""
    replicaStatuses:
      Scheduler: {desired: 1, active: 1, succeeded: 0, failed: 0, pending: 0}
      Worker: {desired: 2, active: 1, succeeded: 1, failed: 0, pending: 0}
    conditions:
      - type: Running
        status: "True"
        reason: MXJobRunning
        message: MXJob digits is running.
        lastUpdateTime: "2026-01-02T12:00:00Z"
        lastTransitionTime: "2026-01-02T12:00:00Z"
    failure: {}
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin
from ansible_collections.dljob.operator.plugins.module_utils.logic import aggregate
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework, InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.plugin_utils.framework import build_framework, declaration_of


def job_status(pods: Any, job: Any, framework: Any, now: Any = None) -> dict[str, Any]:
    try:
        resource = _resource(job)
        return aggregate.job_status(resource, _framework(framework, resource), _pods(pods), _time(now))
    except InvalidFramework as e:
        raise AnsibleFilterError(f"job_status: framework: {e}") from e
    except InvalidJob as e:
        raise AnsibleFilterError(f"job_status: the job is not valid: {e}") from e
    except aggregate.AmbiguousJob as e:
        raise AnsibleFilterError(f"job_status: job: {e}") from e


def _pods(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, (list, tuple)):
        raise AnsibleFilterError(
            "job_status: the input must be a list of Pods, as kubernetes.core.k8s_info returns it in resources, "
            f"not {type(given).__name__}"
        )
    for number, pod in enumerate(given):
        if not isinstance(pod, Mapping) or not isinstance(pod.get("metadata"), Mapping):
            raise AnsibleFilterError(f"job_status: item {number} of the input must be a Pod: it has no metadata")
        if pod.get("kind", "Pod") != "Pod":
            raise AnsibleFilterError(f"job_status: item {number} of the input must be a Pod, not a {pod['kind']}")
    return list(to_builtin(given))


def _resource(given: Any) -> dict[str, Any]:
    metadata = given.get("metadata") if isinstance(given, Mapping) else None
    if not (isinstance(metadata, Mapping) and metadata.get("name") and given.get("apiVersion") and given.get("kind")):
        raise AnsibleFilterError(
            "job_status: job must be the manifest of one job, with apiVersion, kind and metadata.name "
            "(of what kubernetes.core.k8s_info returns, an item of resources)"
        )
    return dict(to_builtin(given))


def _framework(given: Any, resource: Mapping[str, Any]) -> Framework:
    if not isinstance(given, (Mapping, str)) or not given:
        raise AnsibleFilterError(
            "job_status: framework must be the declaration of a framework, such as mxnet_framework of "
            f"roles/mxnet/vars/main.yml, or the name of a role of this collection, not {given!r}"
        )
    declared = declaration_of(to_builtin(given)) if isinstance(given, str) else to_builtin(given)
    # Neither the environment of the processes nor the text of a program that the role brings is part of the status.
    relevant = {key: value for key, value in declared.items() if key != "environment"}
    if any_framework.is_any(resource):
        declared_for_any = any_framework.declared_for_any(relevant)
        return any_framework.adapt(build_framework(declared_for_any, read=lambda name: ""))
    return build_framework(relevant, read=lambda name: "")


def _time(given: Any) -> datetime:
    if given is None:
        return datetime.now(UTC)
    moment = clock.parse(given) if isinstance(given, str) else None
    if moment is None:
        raise AnsibleFilterError(f"job_status: now must be a time such as 2026-01-02T12:00:00Z, not {given!r}")
    return moment


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"job_status": job_status}
