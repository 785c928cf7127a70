"""When an image is built, and the error of a failed build."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from devtools.build.images import build, context, definition, manifests, remote
from devtools.build.images.errors import ImagesError
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import lifecycle, registry

# replaces the docker client: prints an image's labels, records each call, and optionally fails a build
DOCKER = """#!/bin/sh
echo "$@" >>"$0.calls"
case "$1 $2" in
  "image inspect") case "$*" in
    *--format*) cat "$0.labels" 2>/dev/null;;
    *) [ "$3" = busybox:1.36 ];;
  esac;;
  build*) if [ -e "$0.broken" ]; then echo "step 3: it does not compile"; exit 1; fi;;
esac
"""


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    program = tmp_path / "docker"
    program.write_text(DOCKER)
    program.chmod(0o755)
    return program


def run(docker: Path, tmp_path: Path, key: str = "k1") -> list[str]:
    """Build the image `shell` with that client; the calls it got."""
    reporter = Reporter(tmp_path / "durations.json", io.StringIO())
    build.build(definition.load("shell"), key, tmp_path / "cache", Engine("user", docker, {}), reporter)
    return Path(f"{docker}.calls").read_text().splitlines()


def test_the_python_of_the_operators_image_is_that_of_the_base_it_is_built_on() -> None:
    base = definition.load("operator").base
    stand_in = definition.load(base.stand_in)
    python = build._python  # noqa: SLF001 - without an engine that builds
    assert python(base, base.image) == base.python == "3.12"
    assert python(base, "registry.example.com/own:1") == base.python
    assert python(base, stand_in.names[0]) == stand_in.base.python == "3.11"
    assert python(stand_in.base, "dljob/base-debian-ansible:1") == stand_in.base.python


def test_an_image_that_docker_has_is_not_built_again(docker: Path, tmp_path: Path) -> None:
    Path(f"{docker}.labels").write_text('{"dljob.operator/content": "k1"}')
    assert not [call for call in run(docker, tmp_path) if call.startswith("build")]


@pytest.mark.parametrize("labels", ['{"dljob.operator/content": "old"}', "null", "{}"])
def test_any_other_image_is_built_without_network_and_labelled(docker: Path, tmp_path: Path, labels: str) -> None:
    Path(f"{docker}.labels").write_text(labels)
    (call,) = [call for call in run(docker, tmp_path) if call.startswith("build")]
    assert "--network none" in call
    assert "--build-arg BASE_IMAGE=busybox:1.36" in call
    assert "--label dljob.operator/content=k1" in call
    assert "--tag dljob/shell:1" in call
    assert list((tmp_path / "cache/work").iterdir()) == [], "the context is removed"


def test_a_failed_build_shows_what_docker_said(docker: Path, tmp_path: Path) -> None:
    Path(f"{docker}.broken").touch()
    Path(f"{docker}.labels").write_text("null")
    with pytest.raises(ImagesError, match="it does not compile") as failed:
        run(docker, tmp_path)
    assert "shell/Dockerfile" in failed.value.fix
    assert list((tmp_path / "cache/work").iterdir()) == []


def test_a_new_cluster_pulls_names_that_the_registry_has_since_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(state_dir=tmp_path / "state", cache_dir=tmp_path / "cache", name="dljob")
    session = SimpleNamespace(
        state=SimpleNamespace(registry_port=5000), report=Reporter(tmp_path / "durations.json", io.StringIO())
    )
    monkeypatch.setattr(lifecycle, "existing", lambda _: (session, SimpleNamespace(engine=None)))
    monkeypatch.setattr(registry, "serves", lambda _: True)
    monkeypatch.setattr(remote, "content", lambda *_: context.key(definition.load("mxnet")))
    used = manifests.Use("job.yaml", "MXJob", "registry.example.com:5000/mxnet/train:1")
    monkeypatch.setattr(manifests, "read", lambda _: [used])
    assert used.image in build.build_and_push(settings, ["mxnet"])
    assert {file.parent.name for file in settings.certs_dir.glob("*/hosts.toml")} == {
        "docker.io",
        "registry.example.com:5000",
    }


@pytest.mark.parametrize(("kind", "removed"), [("own", ["rmi dljob/shell:1"]), ("user", [])])
def test_the_clusters_own_engine_keeps_no_image_that_the_registry_has(
    docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, removed: list[str]
) -> None:
    session = SimpleNamespace(
        state=SimpleNamespace(registry_port=5000), report=Reporter(tmp_path / "durations.json", io.StringIO())
    )
    engine = Engine(kind, docker, {})
    monkeypatch.setattr(lifecycle, "existing", lambda _: (session, SimpleNamespace(engine=engine)))
    monkeypatch.setattr(registry, "serves", lambda _: True)
    monkeypatch.setattr(remote, "content", lambda *_: None)
    pushed: list[str] = []
    monkeypatch.setattr(registry, "push", lambda *arguments: pushed.extend(arguments[-1]))
    monkeypatch.setattr(manifests, "read", lambda _: [])
    settings = Settings(state_dir=tmp_path / "state", cache_dir=tmp_path / "cache", name="dljob")
    build.build_and_push(settings, ["shell"])
    calls = Path(f"{docker}.calls").read_text().splitlines()
    assert pushed == ["dljob/shell:1"]
    assert [call for call in calls if call.startswith("rmi")] == removed


@pytest.mark.parametrize("file", sorted(definition.IMAGES_DIR.glob("*/Dockerfile")), ids=lambda path: path.parent.name)
def test_a_stage_that_becomes_no_image_is_removed_with_the_replaced_ones(file: Path) -> None:
    lines = file.read_text().splitlines()
    stages = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    assert stages
    for number in stages[:-1]:
        assert lines[number + 1] == f"LABEL {context.LABEL}=stage"
