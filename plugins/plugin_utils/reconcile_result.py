"""The outcomes of reconciles as the result of an Ansible task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin


def task_result(outcomes: Sequence[Outcome], with_diff: bool = False) -> dict[str, Any]:
    """What RETURN of ``dljob.operator.reconcile`` documents.

    The failure of a single job fails the task; of a batch each job's own result counts, and only the failure of all
    jobs fails the task.
    """
    results = [outcome.as_result() for outcome in outcomes]
    waits = [result["requeue_after"] for result in results if result["requeue_after"] is not None]
    failures = [result for result in results if not result["ok"]]
    combined: dict[str, Any] = {
        "changed": any(result["changed"] for result in results),
        "dljob": {"jobs": results, "requeue_after": min(waits, default=None)},
    }
    warnings = list(dict.fromkeys(warning for outcome in outcomes for warning in outcome.warnings))
    if warnings:
        combined["warnings"] = warnings
    if failures:
        combined["msg"] = "; ".join(f"{r['namespace']}/{r['name']}: {r['message']}" for r in failures)
        combined["failed"] = len(results) == len(failures)
    if with_diff:
        combined["diff"] = [change for outcome in outcomes for change in _diff(outcome)]
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
    if outcome.status is not None:
        metadata = outcome.resource["metadata"]
        name = f"{outcome.resource['kind']} {metadata['name']} status"
        before = outcome.resource.get("status")
        yield {
            "before_header": name,
            "after_header": name,
            "before": _yaml(before) if before else "",
            "after": _yaml(outcome.status),
        }


def _yaml(value: Any) -> str:
    return str(yaml.safe_dump(to_builtin(value), sort_keys=True, allow_unicode=True))
