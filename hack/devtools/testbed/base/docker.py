"""A Docker engine: the user's, if it responds, or the private one of `devtools.testbed.offline`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.testbed.base import shell


@dataclass(frozen=True)
class Engine:
    """A Docker engine, and the environment variables that make the docker client use it."""

    kind: str
    """"user" or "own"."""
    docker: Path
    """The client."""
    env: Mapping[str, str]

    def run(self, *arguments: str | Path, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        options.setdefault("env", self.env)
        return shell.run([self.docker, *arguments], check=check, **options)

    def has_image(self, name: str) -> bool:
        return self.run("image", "inspect", name, check=False).returncode == 0

    def answers(self) -> bool:
        """Whether the engine responds within 20 s."""
        done = self.run("info", "--format", "{{.ServerVersion}}", check=False, timeout=20)
        return done.returncode == 0 and bool(done.stdout.strip())


def user_engine(env: Mapping[str, str]) -> Engine | None:
    """The Docker that the user's client reaches; None if there is no client or the engine does not respond."""
    docker = shell.find("docker")
    if docker is None:
        return None
    # pin the endpoint checked here: the cluster's record may name another one than this shell's environment
    kept = {name: env[name] for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG") if env.get(name)}
    engine = Engine("user", docker, kept)
    return engine if engine.answers() else None
