"""The example programs as modules: they are scripts, outside any package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "examples" / "training"


def load(path: str) -> ModuleType:
    """The program examples/training/`path`, imported without being run."""
    file = TRAINING / path
    name = f"example_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses need their module in sys.modules
    spec.loader.exec_module(module)
    return module
