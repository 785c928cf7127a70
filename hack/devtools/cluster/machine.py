"""What all engines of one machine share: kernel settings they change, mount points they need.

The first engine notes how things were, the last one puts them back. One cluster's end must not take from another,
and a second cluster must not note the first one's changes as the original.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from devtools.cluster import sysctl

SHARED = Path("/run/dljob")
"""Gone with a reboot, as are the settings."""


@contextlib.contextmanager
def _locked(shared: Path) -> Iterator[None]:
    """The lock lies beside the folder: that is removed by its last user."""
    path = shared.with_name(f"{shared.name}.lock")
    while True:
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # the one before us may have been the last and have removed the file
            if path.exists() and os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
                yield
                return


def enter(ident: str, mount_points: Sequence[str], shared: Path = SHARED, kernel: Path = sysctl.ROOT) -> None:
    """Count the engine ``ident`` in, and make the mount points that are missing. Repeating it changes nothing."""
    with _locked(shared):
        users, before = shared / "users", shared / "before.json"
        users.mkdir(parents=True, exist_ok=True)
        if not before.exists():
            missing = [path for path in mount_points if not Path(path).is_dir()]
            before.write_text(json.dumps({"sysctls": sysctl.snapshot(kernel), "made": missing}))
        for path in mount_points:
            Path(path).mkdir(parents=True, exist_ok=True)
        sysctl.raise_limits(kernel)  # one that cannot be raised may still do
        (users / ident).touch()


def leave(ident: str, shared: Path = SHARED, kernel: Path = sysctl.ROOT) -> list[str]:
    """Count the engine out; with the last one things are as before. Returns the settings that could not be restored."""
    with _locked(shared):
        (shared / "users" / ident).unlink(missing_ok=True)
        if not shared.is_dir() or any((shared / "users").iterdir()):
            return []
        before = json.loads((shared / "before.json").read_text())
        failed = sysctl.restore(before["sysctls"], kernel)
        for path in before["made"]:
            with contextlib.suppress(OSError):  # somebody else's engine uses it by now
                Path(path).rmdir()
        shutil.rmtree(shared)
        shared.with_name(f"{shared.name}.lock").unlink(missing_ok=True)
        return failed
