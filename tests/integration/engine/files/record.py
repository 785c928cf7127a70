"""The only action of the tests' roles: it writes down what it was given and does what the job's spec says."""

from __future__ import annotations

import json
import os
import pathlib
import signal
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot, worker_protocol


class ActionModule(ActionBase):
    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = task_vars or {}
        work_source = worker_protocol.current()
        if work_source is not None and given.get(worker_protocol.WORKER_VAR):
            self._stay(work_source, given)
            return result
        batch = to_builtin(given.get("dljob_batch"))
        jobs = (
            batch
            if batch is not None
            else [to_builtin(next(value for name, value in given.items() if name.endswith("_echojob")))]
        )
        return result | self._look_at(jobs, given, len(jobs))

    def _stay(self, work_source: worker_protocol.WorkSource, given: dict[str, Any]) -> None:
        """Report each job as soon as it is done, first those that wait for nothing."""
        for work in work_source.work():
            cache_snapshot.publish(work.owned, work.cluster_info)
            jobs = sorted(work.jobs, key=lambda job: bool(job.get("spec", {}).get("wait_for")))
            for job in jobs[:-1]:
                work_source.report_partial(self._look_at([job], given, len(jobs)))
            work_source.report_final(self._look_at(jobs[-1:], given, len(jobs)))

    def _look_at(self, jobs: list[dict[str, Any]], given: dict[str, Any], together: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        reports, failed = [], []
        for job in jobs:
            metadata, spec = job["metadata"], job.get("spec", {})
            self._write_down(job, together, given)
            if spec.get("crash"):
                os.kill(os.getppid(), signal.SIGKILL)
                signal.pause()
            while spec.get("wait_for") and not pathlib.Path(spec["wait_for"]).exists():
                signal.sigtimedwait([], 0.01)
            if spec.get("fail"):
                failed.append(spec["fail"])
            reports.append(
                {
                    **{key: metadata[key] for key in ("uid", "namespace", "name")},
                    "ok": not spec.get("fail"),
                    "message": spec.get("fail", ""),
                    "requeue_after": spec.get("requeue"),
                }
            )
        result["dljob"] = {"requeue_after": None, "jobs": reports}
        if failed and len(jobs) == len(failed):
            result |= {"failed": True, "msg": "; ".join(failed)}
        return result

    @staticmethod
    def _write_down(job: dict[str, Any], jobs: int, given: dict[str, Any]) -> None:
        metadata = job["metadata"]
        owned = (cache_snapshot.current() or {})[metadata["uid"]]
        line = {
            "name": metadata["name"],
            "generation": metadata["generation"],
            "pods": {pod["metadata"]["name"]: pod.get("status", {}).get("phase") for pod in owned["Pod"]},
            "services": len(owned["Service"]),
            "jobs": jobs,
            "single": to_builtin(given.get("ansible_operator_meta")),
            "state": given.get("state"),
            "say": job.get("spec", {}).get("say"),
        }
        with pathlib.Path(given["record_file"]).open("a") as file:
            file.write(json.dumps(line) + "\n")
