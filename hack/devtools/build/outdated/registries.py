"""Asks a registry for the versions of a project, through the registry's own client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence

from devtools.build.outdated.pins import GO, PYPI, Pin

SECONDS = 120
_COMMANDS: dict[str, Sequence[str]] = {
    GO: ("go", "list", "-m", "-versions", "-json"),
    PYPI: (sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions"),
}


class RegistryError(Exception):
    """A registry did not answer; the message has its client's words."""


def versions(pin: Pin) -> list[str]:
    """All versions of the project of ``pin`` that its registry serves. Raises :class:`RegistryError`."""
    if not pin.registry:
        return []
    command = [*_COMMANDS[pin.registry], pin.project]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd="/", check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RegistryError(f"{pin.name}: {error}") from error
    if done.returncode:
        raise RegistryError(f"{pin.name}: {done.stderr.strip().splitlines()[-1:] or command}")
    if pin.registry == GO:
        return list(json.loads(done.stdout).get("Versions") or ())
    available = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    return available[1].split(", ") if available else []
