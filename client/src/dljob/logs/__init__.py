"""The logs of all replicas of a job as one."""

from __future__ import annotations

from dljob.logs.line import LogLine
from dljob.logs.source import Choice

__all__ = ("Choice", "LogLine")
