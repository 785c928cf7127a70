"""Write the part of ansible-runner's artifacts that ansible-operator and its users read."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

from dljob_operator import logs
from dljob_operator.ansible_operator_bridge.command import Command
from dljob_operator.engine.cache.predicates import object_fields
from dljob_operator.engine.cache.transforms import Object

_LOG = logging.getLogger(__name__)
FEWEST_RUNS, MOST_RUNS = 3, 20
"""With fewer than the former ansible-runner 2.4.3 fails: it counts the link `latest`, which ansible-operator sets, as a
run, and cannot remove it. The latter is ansible-operator's default."""


@contextlib.contextmanager
def errors_logged(resource: Object) -> Iterator[None]:
    """Log an OSError of the body instead of raising it: a run of `resource` counts without its artifacts."""
    try:
        yield
    except OSError as error:
        _LOG.warning("cannot write the artifacts of a run", extra=logs.fields(**object_fields(resource), error=error))


def write(command: Command, output: str, code: int) -> None:
    """Write artifacts/<ident>/{stdout,rc,status}. Raises OSError."""
    folder = command.artifacts
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in (("stdout", output), ("rc", str(code)), ("status", "successful" if code == 0 else "failed")):
        (folder / name).write_text(text, encoding="utf-8")


def prepare(command: Command) -> None:
    """Create the folder of all artifacts, in which ansible-operator sets a link after each run. Raises OSError."""
    command.artifacts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def remove_input(command: Command) -> None:
    """Remove the variables of a run that has ended, by far the largest file of its input. Raises OSError.

    ansible-operator writes it before each run and deletes none, also not after the job is deleted: the jobs of a busy
    cluster, or a few large ones, would fill the pod's temporary volume, and Kubernetes would evict the pod.
    """
    (command.folder / "env" / "extravars").unlink(missing_ok=True)


def rotate(command: Command) -> None:
    """Remove the oldest runs until `--rotate-artifacts` of them are left. Never raises.

    At least FEWEST_RUNS are left, as after a run of the real ansible-runner, and at most MOST_RUNS: a tenant's
    annotation may ask for more, and 0 for all.
    """
    kept = max(FEWEST_RUNS, min(command.rotate, MOST_RUNS)) if command.rotate > 0 else MOST_RUNS
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        for folder in command.artifacts.parent.iterdir():
            with contextlib.suppress(OSError):  # another run of the same job may delete it too
                if folder.is_dir() and not folder.is_symlink():
                    found.append((folder.stat().st_mtime, folder))
    for _, folder in sorted(found)[:-kept]:
        shutil.rmtree(folder, ignore_errors=True)
