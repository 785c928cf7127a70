"""Runs other programs, captures their output and raises ClusterError on failure."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devtools.testbed.base.errors import ClusterError

TAIL = 15


def merged_env(extra: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, **(extra or {})}


def tail(text: str, lines: int = TAIL) -> str:
    return "\n".join("    " + line for line in text.strip().splitlines()[-lines:])


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    check: bool = True,
    timeout: float | None = None,
    fix: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a program until it exits. With ``check``, a failure raises ClusterError with the output's last lines.

    Without it, exit status 127 means that the program was not found.
    """
    argv = [str(part) for part in command]
    try:
        done = subprocess.run(
            argv, env=merged_env(env), cwd=cwd, input=stdin, text=True, capture_output=True, timeout=timeout,
            stdin=subprocess.DEVNULL if stdin is None else None,
        )  # fmt: skip
    except FileNotFoundError as error:
        if check:
            raise ClusterError(f"{argv[0]}: not found", fix or f"install {Path(argv[0]).name}") from error
        return subprocess.CompletedProcess(argv, 127, "", str(error))
    except subprocess.TimeoutExpired as error:
        if check:
            raise ClusterError(f"timed out after {timeout:.0f} s: {shlex.join(argv)}", fix) from error
        return subprocess.CompletedProcess(argv, 124, "", f"timed out after {timeout} s")
    if check and done.returncode != 0:
        output = tail(done.stderr or done.stdout)
        raise ClusterError(f"{shlex.join(argv)[:300]}\n  failed ({done.returncode}):\n{output}", fix)
    return done


def find(program: str, path: str | None = None) -> Path | None:
    found = shutil.which(program, path=path)
    return Path(found) if found else None


def pipe(
    producer: Sequence[str | Path],
    consumer: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    producer_env: Mapping[str, str],
) -> None:
    """Run ``producer | consumer``; raises ClusterError if either fails."""
    first, second = [str(p) for p in producer], [str(p) for p in consumer]
    with subprocess.Popen(
        first, env=merged_env(producer_env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as source:
        done = subprocess.run(second, env=merged_env(env), stdin=source.stdout, capture_output=True, text=True)
        assert source.stdout is not None
        source.stdout.close()
    if done.returncode or source.returncode:
        raise ClusterError(f"{shlex.join(first)} | {shlex.join(second)}\n  failed:\n{tail(done.stderr)}")
