"""Warm Ansible runs: a process that has imported everything and forks a child for every run.

`client` is the side of the engine, `fork_server` the process that forks, `play` what happens in a child;
`messages` is what they say to each other. Only `play` and `callbacks` import Ansible, and only within the
fork_server.
"""

from __future__ import annotations

from dljob_operator.runner.client import RunnerClient
from dljob_operator.runner.messages import Failure, RunOutcome, RunRequest, RunResult, Target

__all__ = ["Failure", "RunOutcome", "RunRequest", "RunResult", "RunnerClient", "Target"]
