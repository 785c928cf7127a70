"""Calls of the user's Docker, which responds and can pull, so that no node image is built.

The client is a script that records its arguments, and fails for those that the test sets.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from devtools.testbed.base import versions
from devtools.testbed.base.docker import Engine, user_engine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.session import Session
from devtools.testbed.base.settings import Settings
from devtools.testbed.base.state import State, StateFile
from devtools.testbed.cluster import kindcluster, lifecycle, registry
from devtools.testbed.offline import nodeimage

OFFICIAL = versions.KUBERNETES[versions.DEFAULT_KUBERNETES].node_image
CLIENT = """#!/bin/sh
printf '%s|%s\\n' "$DOCKER_HOST" "$*" >>"$0.log"
while read -r refused; do
  case "$*" in $refused) exit 1 ;; esac
done <"$0.refused"
echo 28.0
"""


class Docker:
    """The script, and the calls that it recorded."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "docker"
        self.path.write_text(CLIENT)
        self.path.chmod(0o755)
        self.refuse()
        self.engine = Engine("user", self.path, {})

    def refuse(self, *patterns: str) -> None:
        """Fail for command lines that match these shell patterns."""
        Path(f"{self.path}.refused").write_text("".join(f"{pattern}\n" for pattern in patterns))

    @property
    def asked(self) -> list[tuple[str, str]]:
        """DOCKER_HOST and arguments of each call."""
        log = Path(f"{self.path}.log")
        lines = log.read_text().splitlines() if log.exists() else []
        return [(host, arguments) for host, _, arguments in (line.partition("|") for line in lines)]

    def commands(self, verb: str) -> list[str]:
        return [arguments for _, arguments in self.asked if arguments.startswith(verb)]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return Docker(folder)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "state", tmp_path / "cache", "dljob")


@pytest.fixture
def session(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(nodeimage, "build", lambda *_: pytest.fail("a node image is built"))
    settings.state_dir.mkdir()
    return Session(settings, StateFile(settings.state_dir), State(), Reporter(settings.cache_dir / "d.json"))


# ---- which Docker


def test_the_users_docker_is_used_if_it_responds(docker: Docker) -> None:
    found = user_engine({"DOCKER_CONFIG": "/c", "HOME": "/x"})
    assert found == Engine("user", docker.path, {"DOCKER_CONFIG": "/c"})
    docker.refuse("info *")
    assert user_engine({}) is None


def test_the_recorded_docker_host_overrides_the_environment(
    docker: Docker, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///another.sock")
    session.record(name="dljob", engine="user", docker_host="tcp://recorded:2375")
    found = lifecycle.recorded_engine(session)
    assert found is not None and found.env == {"DOCKER_HOST": "tcp://recorded:2375"}
    found.run("ps")
    assert {host for host, _ in docker.asked} == {"tcp://recorded:2375"}


def test_a_stopped_engine_of_the_user_is_an_error_and_starts_no_other(docker: Docker, session: Session) -> None:
    session.record(name="dljob", engine="user")
    docker.refuse("info *")
    with pytest.raises(ClusterError, match="does not respond"):
        lifecycle.ensure_engine(session)


def test_the_client_in_the_clusters_own_folder_stays_a_link_to_the_users(
    docker: Docker, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that has sourced .cluster/env finds that link first on PATH."""
    lifecycle.ensure_engine(session)
    client = session.settings.bin_dir / "docker"
    assert client.readlink() == docker.path
    monkeypatch.setenv("PATH", f"{session.settings.bin_dir}:{os.environ['PATH']}")
    lifecycle.ensure_engine(session)
    assert client.readlink() == docker.path


# ---- the node image


def test_the_official_node_image_is_pulled(docker: Docker, session: Session) -> None:
    docker.refuse("image inspect *")
    assert lifecycle.ensure_node_image(session, docker.engine) == OFFICIAL
    assert docker.commands("pull") == [f"pull -q {OFFICIAL}"]


@pytest.mark.parametrize("minor", list(versions.KUBERNETES))
def test_the_official_node_image_has_the_chosen_kubernetes(docker: Docker, session: Session, minor: str) -> None:
    docker.refuse("image inspect *")
    session.settings = dataclasses.replace(session.settings, kubernetes=minor)
    pulled = lifecycle.ensure_node_image(session, docker.engine)
    assert pulled.startswith(f"kindest/node:v{minor}.") and "@sha256:" in pulled


def test_one_that_docker_has_is_not_pulled(docker: Docker, session: Session) -> None:
    docker.refuse("image inspect kindest/node:*-dljob-*")
    assert lifecycle.ensure_node_image(session, docker.engine) == OFFICIAL
    assert docker.commands("pull") == []


def test_the_users_choice_comes_first(docker: Docker, session: Session, tmp_path: Path) -> None:
    chosen = Settings(tmp_path / "state", tmp_path / "cache", "dljob", node_image="example/node:1")
    session = Session(chosen, session.file, session.state, session.report)
    docker.refuse("image inspect *")
    assert lifecycle.ensure_node_image(session, docker.engine) == "example/node:1"
    docker.refuse("image inspect *", "pull *")
    with pytest.raises(ClusterError, match="unset KIND_NODE_IMAGE"):
        lifecycle.ensure_node_image(session, docker.engine)


def test_without_a_registry_one_is_built(docker: Docker, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    class Built(Exception):
        pass

    def build(*_: object) -> None:
        raise Built

    monkeypatch.setattr(nodeimage, "build", build)
    docker.refuse("image inspect *", "pull *")
    with pytest.raises(Built):
        lifecycle.ensure_node_image(session, docker.engine)


# ---- the registry and the network


def test_the_official_registry_is_pulled_and_started_with_its_own_command(
    docker: Docker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "serves", lambda port: True)
    docker.refuse("image inspect *")
    settings.state_dir.mkdir()
    registry.start(settings, docker.engine, 5001, "")
    assert docker.commands("pull") == [f"pull -q {versions.OFFICIAL_REGISTRY_IMAGE}"]
    (started,) = docker.commands("run")
    # the official image's entrypoint needs a verb, which the built image already contains
    assert started.endswith(f"{versions.OFFICIAL_REGISTRY_IMAGE} serve /etc/dljob-registry.yaml")
    assert "--ip" not in started, "Docker assigns the network's addresses"
    assert "--publish 127.0.0.1:5001:5000" in started


def test_docker_chooses_the_addresses_of_its_network(docker: Docker, settings: Settings) -> None:
    docker.refuse("network inspect *")
    kindcluster.ensure_network(settings, docker.engine, None)
    (created,) = docker.commands("network create")
    assert "--subnet" not in created and "network.bridge.name" not in created
    assert created.endswith(settings.network)


def test_the_record_says_whose_engine_it_is(docker: Docker, session: Session) -> None:
    lifecycle.ensure_engine(session)
    recorded = json.loads((session.settings.state_dir / "state.json").read_text())
    assert recorded["engine"] == "user"
