"""The local registry's content is kept between clusters, without what no tag names any more."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from devtools.testbed.base import versions
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.settings import settings_from
from devtools.testbed.cluster import registry


class Recorded(Engine):
    """Notes each command, and names the image of the registry's container."""

    image = ""
    commands: list[tuple[str, ...]]

    def run(self, *arguments: str | Path, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(tuple(str(each) for each in arguments))
        assert not check, "the cluster goes down all the same"
        return subprocess.CompletedProcess([], 0, f"{self.image}\n", "")


@pytest.mark.parametrize(
    ("image", "program"),
    [(versions.OFFICIAL_REGISTRY_IMAGE, "registry"), ("dljob/registry:be3e98be20e0", "docker-registry")],
)
def test_it_is_collected_by_the_registrys_own_program(tmp_path: Path, image: str, program: str) -> None:
    settings = settings_from({"DLJOB_CLUSTER_DIR": str(tmp_path)})
    engine = Recorded("own", tmp_path / "docker", {})
    object.__setattr__(engine, "image", image)
    object.__setattr__(engine, "commands", [])
    registry.collect_garbage(settings, engine)
    assert engine.commands[-1] == (
        "exec", settings.registry, program, "garbage-collect", "--delete-untagged", registry.CONFIG
    )  # fmt: skip
