"""The compiled `ansible-runner` of the operator's image, for an ansible-operator outside of it."""

from __future__ import annotations

from pathlib import Path

from devtools.build.images import context, definition
from devtools.testbed.base.settings import settings_from


def compiled_shim() -> Path:
    """The folder with the program, which is compiled once. Raises ClusterError without Go."""
    (program,) = definition.load("operator").go_programs
    return context.go_program(program, settings_from().cache_dir).parent
