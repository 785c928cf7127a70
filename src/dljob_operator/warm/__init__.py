"""Warm Ansible runs: a process that has imported everything and forks a child for every run.

`client` is the side of the engine, `zygote` the process that forks, `play` what happens in a child;
`messages` is what they say to each other. Only `play` and `callbacks` import Ansible, and only within the
zygote.
"""

from __future__ import annotations

from dljob_operator.warm.client import WarmRunner
from dljob_operator.warm.messages import Ending, Failure, RunRequest, RunResult, Target

__all__ = ["Ending", "Failure", "RunRequest", "RunResult", "Target", "WarmRunner"]
