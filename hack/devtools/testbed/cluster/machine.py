"""What all engines on one machine share: kernel settings that they change, mount points, and address space.

The first engine saves the original values and the last one restores them, so that stopping one cluster does not affect
another, and a second cluster does not save the first one's changes as the original values.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from devtools.testbed.cluster import sysctl

SHARED = Path("/run/dljob")
"""On a tmpfs: a reboot removes it, and resets the settings."""


@contextlib.contextmanager
def _locked(shared: Path) -> Iterator[None]:
    """The lock file is next to the folder, because the last user removes the folder."""
    path = shared.with_name(f"{shared.name}.lock")
    while True:
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # the previous holder may have been the last user and have removed the file
            if path.exists() and os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
                yield
                return


def enter(
    ident: str,
    mount_points: Sequence[str],
    choose: Callable[[list[str]], str],
    shared: Path = SHARED,
    kernel: Path = sysctl.ROOT,
) -> str:
    """Register the engine ``ident`` and create the missing mount points. Idempotent.

    Returns the engine's addresses: what ``choose`` returns when given those of all other engines. Routes alone do not
    show these: an engine has addresses for seconds before it has a link.
    """
    with _locked(shared):
        users, before = shared / "users", shared / "before.json"
        users.mkdir(parents=True, exist_ok=True)
        if not before.exists():
            missing = [path for path in mount_points if not Path(path).is_dir()]
            before.write_text(json.dumps({"sysctls": sysctl.snapshot(kernel), "made": missing}))
        for path in mount_points:
            Path(path).mkdir(parents=True, exist_ok=True)
        sysctl.raise_limits(kernel)  # a limit that cannot be raised may still be sufficient
        others = [user.read_text() for user in users.iterdir() if user.name != ident]
        chosen = choose([block for block in others if block])  # a process killed while it wrote one left it empty
        (users / ident).write_text(chosen)
        return chosen


def leave(ident: str, shared: Path = SHARED, kernel: Path = sysctl.ROOT) -> list[str]:
    """Unregister the engine; the last one restores the settings. Returns those that could not be restored."""
    with _locked(shared):
        (shared / "users" / ident).unlink(missing_ok=True)
        if not shared.is_dir() or any((shared / "users").iterdir()):
            return []
        before = json.loads((shared / "before.json").read_text())
        failed = sysctl.restore(before["sysctls"], kernel)
        for path in before["made"]:
            with contextlib.suppress(OSError):  # another engine uses it meanwhile
                Path(path).rmdir()
        shutil.rmtree(shared)
        shared.with_name(f"{shared.name}.lock").unlink(missing_ok=True)
        return failed
