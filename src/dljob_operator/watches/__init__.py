"""watches.yaml: which role or playbook reconciles which kind."""

from __future__ import annotations

from dljob_operator.watches.load import load_watches
from dljob_operator.watches.lookup import ProcessState, crds_directory, default_watches_file
from dljob_operator.watches.model import GVK, Finalizer, Watch, WatchesError

__all__ = [
    "GVK",
    "Finalizer",
    "ProcessState",
    "Watch",
    "WatchesError",
    "crds_directory",
    "default_watches_file",
    "load_watches",
]
