"""kubeflow-training, the Python client of training-operator, in an environment of its own.

``program.py`` runs there: it calls the client's public methods on a job of one kind and prints what they returned.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from devtools.build.collection.environment import cached_environment, environ, pip
from devtools.paths import ROOT

VERSIONS = ("1.7.0", "1.8.1", "1.9.4")
"""The last client with methods of each kind, the last of the releases with MXJob, and the newest."""
PINS = ROOT / "requirements-kubeflow-sdk.txt"
PROGRAM = Path(__file__).parent / "program.py"


def environment(cache: Path, version: str) -> Path:
    """The ``bin`` folder of an environment with that version of the client."""
    wanted = f"kubeflow-training=={version}"

    def fill(folder: Path) -> None:
        pip(folder / "bin" / "python", "install", "--constraint", str(PINS), wanted)

    return cached_environment(cache, fill, wanted, trees=[PINS]) / "bin"


def use(
    bin_dir: Path, kubeconfig: Path, namespace: str, kind: str, image: str, while_running: Callable[[str], None]
) -> dict[str, Any]:
    """What the client returned for a job of ``kind``; see program.py. A failure carries what the program printed.

    ``while_running`` is called once the client has found the job Running, with the name of the framework's container,
    and ends the training.
    """
    command = [str(bin_dir / "python"), str(PROGRAM), str(kubeconfig), namespace, kind, image]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=environ(bin_dir), text=True, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("running "):
                    while_running(line.split()[1])
                    process.stdin.write("go on\n")
                    process.stdin.flush()
            assert process.wait() == 0, "".join(lines)
        finally:
            process.kill()
    found: dict[str, Any] = json.loads(lines[-1])
    return found
