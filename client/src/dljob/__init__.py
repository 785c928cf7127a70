"""Distributed training jobs on Kubernetes, seen and steered from a laptop.

Imports nothing of the operator, and needs no Ansible. What it exports is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dljob.aio import AsyncClient as AsyncClient
    from dljob.client import Change as Change
    from dljob.client import Client as Client
    from dljob.client import Jobs as Jobs
    from dljob.client import Submitted as Submitted
    from dljob.errors import DljobError as DljobError
    from dljob.view import JobView as JobView

__version__ = "0.1.0"

_MODULES = {"AsyncClient": "aio", "DljobError": "errors", "JobView": "view"}
__all__ = ["AsyncClient", "Change", "Client", "DljobError", "JobView", "Jobs", "Submitted"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dljob.{_MODULES.get(name, 'client')}"), name)
