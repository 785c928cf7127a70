"""One pass over jobs of one framework. Documentation: plugins/modules/reconcile.py."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.dljob.operator.plugins.module_utils.api import cache_snapshot, worker_protocol
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import ApiError, RestClient, connect
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin
from ansible_collections.dljob.operator.plugins.module_utils.logic import rbac
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import CLOUDS, CONFIG_MAP
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.plugin_utils.framework import build_framework

_ARGUMENTS = {"framework", "jobs", "cluster_domain", "config_map", "cloud", "kubeconfig", "context"}

PARALLEL_JOBS = 4
"""Jobs of a batch under way at once; their pods are written several at a time besides."""

TELL_EVERY = 0.25
"""Seconds after which an engine is told of the jobs that are through while others of their batch, of a thousand
replicas perhaps, are not: until it knows, it does not look at them again."""


class ActionModule(ActionBase):
    """Runs in the controller's own process: no module transfer, no second Python, imports inherited from the parent."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = to_builtin(self._task.args)
        unknown = sorted(set(arguments) - _ARGUMENTS)
        if unknown:
            raise AnsibleActionFail(f"dljob.operator.reconcile has no argument {unknown[0]!r}")
        try:
            framework = build_framework(arguments.get("framework") or {}, self._read)
        except InvalidFramework as e:
            raise AnsibleActionFail(f"framework: {e}") from e
        jobs = arguments.get("jobs")
        work_source = worker_protocol.current()
        if jobs is None and work_source is not None and (task_vars or {}).get(worker_protocol.WORKER_VAR):
            return {**result, **self._stay(work_source, framework, arguments)}
        if jobs is None:
            jobs = list(_handed_over(task_vars or {}))
        if not jobs:  # an engine that warms up
            return {**result, "changed": False, "dljob": {"jobs": [], "requeue_after": None}}
        here = _operator_settings(arguments)
        with connect(arguments.get("kubeconfig"), arguments.get("context")) as api:
            ((outcomes, _),) = self._parts(api, jobs, framework, arguments, here)
        return {**result, **_combined(outcomes, self._task.diff)}

    def _stay(
        self, work_source: worker_protocol.WorkSource, framework: Framework, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Batch after batch, over the same connections."""
        changed = False
        here = _operator_settings(arguments)
        with connect(arguments.get("kubeconfig"), arguments.get("context")) as api:
            for work in work_source.work():
                cache_snapshot.publish(work.owned, work.cluster_info)
                parts = self._parts(api, work.jobs, framework, arguments, here, TELL_EVERY)
                for outcomes, is_last in parts:
                    done = _combined(outcomes, False)
                    changed = changed or done["changed"]
                    (work_source.report_final if is_last else work_source.report_partial)(done)
        return {"changed": changed}

    def _parts(
        self,
        api: RestClient,
        jobs: Sequence[Mapping[str, Any]],
        framework: Framework,
        arguments: Mapping[str, Any],
        here: OperatorSettings,
        every: float | None = None,
    ) -> Iterator[tuple[list[Outcome | Mapping[str, Any]], bool]]:
        """What the jobs come to, told ``every`` so many seconds or all in one, and whether it is the last.

        Jobs wait for the API server most of the time, each for its own answers: several at a time.
        """
        if len(jobs) == 1:
            yield [self._one(api, jobs[0], framework, arguments, here)], True
            return
        with ThreadPoolExecutor(min(PARALLEL_JOBS, len(jobs))) as pool:
            going = [pool.submit(self._one, api, job, framework, arguments, here) for job in jobs]
            try:
                while going:
                    done = wait(going, every).done
                    is_last = len(done) == len(going)
                    if done:
                        yield [future.result() for future in going if future in done], is_last
                    going = [future for future in going if future not in done]
            finally:
                for future in going:  # those that still wait, where one has failed by a fault of ours
                    future.cancel()

    def _read(self, name: str) -> str:
        """The text of a file that the role keeps under ``files/``."""
        try:
            return Path(self._find_needle("files", name)).read_text(encoding="utf-8")
        except (AnsibleError, OSError) as e:
            raise InvalidFramework(f"the file {name!r}: {e}") from e

    def _one(
        self,
        api: RestClient,
        job: Mapping[str, Any],
        framework: Framework,
        arguments: Mapping[str, Any],
        here: OperatorSettings,
    ) -> Outcome | Mapping[str, Any]:
        try:
            domain = arguments.get("cluster_domain") or "cluster.local"
            return reconcile(api, job, framework, self._task.check_mode, domain, operator_settings=here)
        except ApiError as e:
            return _failed(job, rbac.explain_denial(str(e)))


def _operator_settings(arguments: Mapping[str, Any]) -> OperatorSettings:
    cloud = arguments.get("cloud") or os.environ.get("DLJOB_CLOUD") or ""
    if cloud and cloud not in CLOUDS:
        raise AnsibleActionFail(f"cloud: {cloud!r} is none of {', '.join(CLOUDS)}; leave it empty elsewhere")
    return OperatorSettings(arguments.get("config_map") or CONFIG_MAP, cloud)


def _handed_over(task_vars: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The jobs that the engine gave us, untouched by templates: a batch, or ansible-operator's ``_<group>_<kind>``."""
    batch = task_vars.get("dljob_batch")
    if batch is not None:
        return [to_builtin(job) for job in batch]
    meta = to_builtin(task_vars.get("ansible_operator_meta")) or {}
    for name, value in task_vars.items():
        if not (name.startswith("_") and f"{name}_spec" in task_vars and isinstance(value, Mapping)):
            continue
        job = to_builtin(value)
        metadata = job.get("metadata") or {}
        if (metadata.get("name"), metadata.get("namespace")) == (meta.get("name"), meta.get("namespace")):
            return [job]
    raise AnsibleActionFail(
        "there is no job: run by an engine (ansible-operator, dljob-operator run), by playbooks/reconcile.yml, "
        "or give the argument jobs"
    )


def _failed(job: Mapping[str, Any], message: str) -> Mapping[str, Any]:
    metadata = job.get("metadata") or {}
    return {
        **{key: metadata.get(key, "") for key in ("namespace", "name", "uid")},
        "ok": False,
        "changed": False,
        "message": message,
        "requeue_after": None,
    }


def _combined(outcomes: Sequence[Outcome | Mapping[str, Any]], with_diff: bool) -> dict[str, Any]:
    results = [o.as_result() if isinstance(o, Outcome) else dict(o) for o in outcomes]
    waits = [r["requeue_after"] for r in results if r["requeue_after"] is not None]
    failures = [r for r in results if not r["ok"]]
    combined: dict[str, Any] = {
        "changed": any(r["changed"] for r in results),
        "dljob": {"jobs": results, "requeue_after": min(waits, default=None)},
    }
    warnings = list(dict.fromkeys(w for o in outcomes if isinstance(o, Outcome) for w in o.warnings))
    if warnings:
        combined["warnings"] = warnings
    if failures:
        combined["msg"] = "; ".join(f"{r['namespace']}/{r['name']}: {r['message']}" for r in failures)
        # in a batch each job's own result counts; a single job's failure is the task's
        combined["failed"] = len(results) == len(failures)
    if with_diff:
        combined["diff"] = [d for o in outcomes if isinstance(o, Outcome) for d in _diff(o)]
    return combined


def _diff(outcome: Outcome) -> Iterable[dict[str, str]]:
    """Each change as the object before and after it, in YAML."""
    plan = outcome.plan
    for manifest in (*plan.auxiliary_objects, *plan.services, *plan.pods, *plan.ensured_objects):
        name = f"{manifest['kind']} {manifest['metadata']['name']}"
        yield {"before_header": name, "after_header": name, "before": "", "after": _yaml(manifest)}
    for deletion in plan.deletions:
        name = f"{deletion.kind} {deletion.name}"
        yield {"before_header": name, "after_header": f"{name} (deleted)", "before": f"{name}\n", "after": ""}
    if plan.status is not None:
        metadata = outcome.resource["metadata"]
        name = f"{outcome.resource['kind']} {metadata['name']} status"
        before = outcome.resource.get("status")
        yield {
            "before_header": name,
            "after_header": name,
            "before": _yaml(before) if before else "",
            "after": _yaml(plan.status),
        }


def _yaml(value: Any) -> str:
    return str(yaml.safe_dump(to_builtin(value), sort_keys=True, allow_unicode=True))
