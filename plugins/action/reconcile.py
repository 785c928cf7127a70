"""One reconcile of jobs of one framework. Documentation: plugins/modules/reconcile.py."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.dljob.operator.plugins.module_utils.api.batch import reconcile_all
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.event_sender import EventSender
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import connect
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.loader import Read
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import CLUSTER_DOMAIN
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parsed import Frameworks
from ansible_collections.dljob.operator.plugins.module_utils.shared import (
    cache_snapshot,
    progress,
    settings,
    worker_protocol,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.config_namespaces import config_namespaces
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    CONFIG_MAP,
    SETTING_CLUSTER_DOMAIN,
    SETTING_KUBECTL_DELIVERY,
    SETTING_NON_ROOT_USER,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.plugin_utils.framework import build_framework, build_frameworks
from ansible_collections.dljob.operator.plugins.plugin_utils.reconcile_result import task_result

ARGUMENTS: dict[str, dict[str, Any]] = {
    "framework": {"type": "dict"},
    "frameworks": {"type": "list", "elements": "path"},
    "jobs": {"type": "list", "elements": "dict"},
    "cluster_domain": {"type": "str", "default": CLUSTER_DOMAIN},
    "config_map": {"type": "str", "default": CONFIG_MAP},
    "cloud": {"type": "str", "choices": ["", *settings.CLOUDS], "default": ""},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}
"""A test compares them with the documentation."""

REPORT_EVERY = 0.25
"""Seconds after which an engine gets the results of those jobs of a batch that are reconciled."""


class ActionModule(ActionBase):
    """Runs in the controller's own process: no module transfer, no second Python, imports inherited from the parent."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        self._task.args = to_builtin(self._task.args)
        which = [["framework", "frameworks"]]
        _, arguments = self.validate_argument_spec(ARGUMENTS, mutually_exclusive=which, required_one_of=which)
        frameworks = _frameworks(arguments, self._read)
        jobs = arguments["jobs"]
        work_source = worker_protocol.current()
        if jobs is None and work_source is not None and variables.get(worker_protocol.WORKER_VAR):
            with connect(arguments["kubeconfig"], arguments["context"]) as client, EventSender(client) as sender:
                shared = Context(client, Reader(client), event_sender=sender)
                return {**result, **self._serve(work_source, shared, arguments)}
        jobs = list(_handed_over(variables)) if jobs is None else jobs
        if not jobs:  # an engine that warms up, in a process that forks: no connection yet
            # a worker reads those of DLJobs itself
            files = dict(frameworks.files) if isinstance(frameworks, Framework) else {}
            declaration = {"arguments": to_builtin(arguments), "files": files}
            return {
                **result,
                "changed": False,
                "dljob": {"jobs": [], "requeue_after": None, "declaration": declaration},
            }
        with connect(arguments["kubeconfig"], arguments["context"]) as client:
            reader = Reader(client, cache_snapshot.current(), cache_snapshot.cluster_info())
            context = Context(client, reader, _settings(arguments), self._task.check_mode)
            ((outcomes, _),) = reconcile_all(context, jobs, frameworks)
        return {**result, **task_result(outcomes, self._task.diff)}

    def _serve(
        self,
        work_source: worker_protocol.WorkSource,
        shared: Context,
        own: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Reconcile batch after batch over the same connections; ``own`` are the arguments of this worker's role."""
        changed = False
        by_target: dict[str, Frameworks] = {}
        for batch in work_source.work():
            arguments = own
            read: Read = self._read
            if batch.declaration is not None:
                arguments, read = batch.declaration.arguments, batch.declaration.files.__getitem__
            frameworks = by_target.get(batch.target) or _frameworks(arguments, read)
            by_target[batch.target] = frameworks
            changed = _serve_batch(work_source, shared, batch, frameworks, arguments) or changed
            del batch  # its objects may take much memory, and the next batch has its own
        return {"changed": changed}

    def _read(self, name: str) -> str:
        """The text of a file that the role keeps under ``files/``."""
        try:
            return Path(self._find_needle("files", name)).read_text(encoding="utf-8")
        except (AnsibleError, OSError) as e:
            raise InvalidFramework(f"the file {name!r}: {e}") from e


def _serve_batch(
    work_source: worker_protocol.WorkSource,
    shared: Context,
    batch: worker_protocol.Batch,
    frameworks: Frameworks,
    arguments: Mapping[str, Any],
) -> bool:
    """Reconcile one batch and report its results. Returns whether anything has changed.

    ``shared`` is what all batches have in common.
    """
    context = dataclasses.replace(
        shared,
        reader=Reader(shared.client, batch.owned, batch.cluster_info),
        settings=_settings(arguments),
        is_contended=batch.is_contended,
        changes=batch.changes,
        since_taken=batch.since_taken,
    )
    changed = False
    for outcomes, is_last in reconcile_all(context, batch.jobs, frameworks, REPORT_EVERY):
        done = task_result(outcomes)
        changed = changed or done["changed"]
        (work_source.report_final if is_last else work_source.report_partial)(done)
    return changed


def _frameworks(arguments: Mapping[str, Any], read: Read) -> Frameworks:
    if arguments.get("framework") is not None:
        return _framework(arguments, read)
    try:
        found = build_frameworks([*(arguments["frameworks"] or ()), *_value(settings.FRAMEWORKS)])
    except InvalidFramework as e:
        raise AnsibleActionFail(f"frameworks: {e}") from e
    return {name: _configured(framework) for name, framework in found.items()}


def _framework(arguments: Mapping[str, Any], read: Read) -> Framework:
    try:
        return _configured(build_framework(arguments["framework"], read))
    except InvalidFramework as e:
        raise AnsibleActionFail(f"framework: {e}") from e


def _configured(framework: Framework) -> Framework:
    """The framework with what the administrator has set."""
    return dataclasses.replace(
        framework,
        max_replicas=_value(settings.MAX_REPLICAS_PER_JOB),
        force_delete_after_seconds=_value(settings.FORCE_DELETE_AFTER_SECONDS),
        termination_message_policy=_value(settings.TERMINATION_MESSAGE_POLICY),
        services=_value(settings.SERVICES_SCOPE),
        settings={
            SETTING_CLUSTER_DOMAIN: _value(settings.CLUSTER_DOMAIN),
            SETTING_KUBECTL_DELIVERY: _value(settings.MPI_KUBECTL_DELIVERY_IMAGE),
            SETTING_NON_ROOT_USER: _value(settings.NON_ROOT_USER_ID),
        },
    )


def _value(setting: settings.Setting[settings.Value]) -> settings.Value:
    """The value that the engine, or the user of a playbook, has set by the variable."""
    try:
        return setting.of(os.environ)
    except ValueError as e:
        raise AnsibleActionFail(str(e)) from e


def _settings(arguments: Mapping[str, Any]) -> OperatorSettings:
    cloud = arguments["cloud"] or _value(settings.CLOUD)
    try:
        namespaces = config_namespaces(os.environ)
    except ValueError as e:
        raise AnsibleActionFail(str(e)) from e
    domain = arguments["cluster_domain"]
    if domain == CLUSTER_DOMAIN:
        domain = _value(settings.CLUSTER_DOMAIN) or domain
    gang = _value(settings.GANG_SCHEDULER_NAME)
    return OperatorSettings(
        arguments["config_map"],
        cloud,
        domain,
        namespaces,
        gang,
        kueue=bool(_value(settings.KUEUE)),
        usage=_value(settings.USAGE) == "on",
        progress=progress.endpoint_of(os.environ),
    )


def _handed_over(variables: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The jobs from the engine, never templated: a batch, or ansible-operator's ``_<group>_<kind>``."""
    batch = variables.get(worker_protocol.BATCH_VAR)
    if batch is not None:
        return [to_builtin(resource) for resource in batch]
    meta = to_builtin(variables.get("ansible_operator_meta")) or {}
    for name, value in variables.items():
        if not (name.startswith("_") and f"{name}_spec" in variables and isinstance(value, Mapping)):
            continue
        resource = to_builtin(value)
        metadata = resource.get("metadata") or {}
        if (metadata.get("name"), metadata.get("namespace")) == (meta.get("name"), meta.get("namespace")):
            return [resource]
    raise AnsibleActionFail(
        "there is no job: run by an engine (ansible-operator, dljob-operator run), by playbooks/reconcile.yml, "
        "or give the argument jobs"
    )
