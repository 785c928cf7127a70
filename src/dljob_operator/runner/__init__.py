"""Run Ansible in forked processes: a fork server has loaded Ansible and forks a child for each run or worker.

The engine uses `client`. `fork_server` is the process that forks, `playbook_runner` runs Ansible in its children, and
`messages` defines what they exchange. Only `playbook_runner` and `callbacks` import Ansible, within the fork server.
"""

from __future__ import annotations

from dljob_operator.runner.client import RunnerClient
from dljob_operator.runner.messages import RunEnding, RunRequest, RunResult, Target, TaskFailure

__all__ = ["RunEnding", "RunRequest", "RunResult", "RunnerClient", "Target", "TaskFailure"]
