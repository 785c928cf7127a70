"""Module files for a published Kubernetes, from those of its repository."""

import json
from pathlib import Path
from typing import Any

import pytest
from devtools.paths import ROOT
from devtools.testbed.base import gobuild, shell, upstream_module, versions
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import cli

GO_DIR = ROOT / "hack/go"
UPSTREAM = """\
// This is a generated file. Do not edit directly.

module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tcel.dev/expr v0.25.1
\tk8s.io/api v0.0.0
\tk8s.io/klog/v2 v2.140.0
\tk8s.io/sample-apiserver v0.0.0
)

require (
\tk8s.io/gengo/v2 v2.0.0 // indirect
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver
\tk8s.io/sample-controller => ./staging/src/k8s.io/sample-controller
\tk8s.io/streaming => ./staging/src/k8s.io/streaming
)
"""


def test_libraries_are_modules_instead_of_folders() -> None:
    made = upstream_module.module_file(UPSTREAM, "v1.37.2")
    assert "module dljob.operator/build/kubernetes\n\nrequire k8s.io/kubernetes v1.37.2\n" in made
    assert "\tk8s.io/api v0.37.2\n" in made
    assert "\tk8s.io/api => k8s.io/api v0.37.2\n\tk8s.io/streaming => k8s.io/streaming v0.37.2\n)" in made
    assert "staging" not in made and "v0.0.0" not in made


def test_everything_else_is_as_upstream_has_it() -> None:
    before, after = UPSTREAM.splitlines(), upstream_module.module_file(UPSTREAM, "v1.37.2").splitlines()
    assert set(before) - set(after) == {
        "module k8s.io/kubernetes",
        "\tk8s.io/api v0.0.0",
        "\tk8s.io/api => ./staging/src/k8s.io/api",
        "\tk8s.io/sample-apiserver v0.0.0",
        "\tk8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver",
        "\tk8s.io/sample-controller => ./staging/src/k8s.io/sample-controller",
        "\tk8s.io/streaming => ./staging/src/k8s.io/streaming",
    }
    assert upstream_module.libraries(UPSTREAM) == ("k8s.io/api", "k8s.io/streaming")


@pytest.mark.parametrize("minor", list(versions.KUBERNETES))
def test_the_committed_checksums_are_those_of_the_version(minor: str) -> None:
    """Each release of Kubernetes has almost thirty libraries, each with two checksums."""
    version = versions.KUBERNETES[minor].version
    lines = (GO_DIR / gobuild.kubernetes(minor).module / "go.sum").read_text().splitlines()
    assert version.startswith(f"v{minor}.")
    assert lines == sorted(lines) and len(lines) > 50
    assert any(line.startswith(f"k8s.io/kubernetes {version} h1:") for line in lines)
    of_release = {version, upstream_module.library_version(version)}
    assert {line.split()[1].removesuffix("/go.mod") for line in lines} == of_release


class Proxy:
    """What ``go mod download -json`` reports: one JSON object after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "go.mod").write_text(UPSTREAM)
        (folder / "go.sum").write_text("cel.dev/expr v0.25.1 h1:e=\n")
        self.sums = {"k8s.io/kubernetes": "h1:k="}

    def run(self, command: list[str], **_: Any) -> Any:
        assert command[:4] == ["go", "mod", "download", "-json"]
        items = []
        for path, version in (module.split("@") for module in command[4:]):
            found = {"Path": path, "Version": version, "Dir": str(self.folder), "Sum": self.sums.get(path, "h1:l=")}
            items.append(json.dumps({**found, "GoModSum": "h1:m="}, indent=1))
        return type("Done", (), {"stdout": "\n".join(items) + "\n"})


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    (tmp_path / "module").mkdir()
    made = Proxy(tmp_path / "module")
    monkeypatch.setattr(shell, "run", made.run)
    return made


def test_pinned_checksums_complete_upstreams(tmp_path: Path, proxy: Proxy) -> None:
    checksums = tmp_path / "kubernetes-1.37" / "go.sum"
    upstream_module.pin("go", checksums, "v1.37.2")
    assert checksums.read_text().splitlines() == [
        "k8s.io/api v0.37.2 h1:l=",
        "k8s.io/api v0.37.2/go.mod h1:m=",
        "k8s.io/kubernetes v1.37.2 h1:k=",
        "k8s.io/kubernetes v1.37.2/go.mod h1:m=",
        "k8s.io/streaming v0.37.2 h1:l=",
        "k8s.io/streaming v0.37.2/go.mod h1:m=",
    ]
    upstream_module.write("go", checksums, "v1.37.2", tmp_path)
    assert (tmp_path / "go.mod").read_text() == upstream_module.module_file(UPSTREAM, "v1.37.2")
    assert (tmp_path / "go.sum").read_text() == "cel.dev/expr v0.25.1 h1:e=\n" + checksums.read_text()


@pytest.mark.parametrize("changed", ["content", "version"])
def test_another_kubernetes_than_the_pinned_one_is_refused(tmp_path: Path, proxy: Proxy, changed: str) -> None:
    """Its module files say where all the rest comes from."""
    checksums = tmp_path / "go.sum"
    upstream_module.pin("go", checksums, "v1.37.2")
    if changed == "content":
        proxy.sums["k8s.io/kubernetes"] = "h1:other="
    with pytest.raises(ClusterError, match="has the checksum"):
        upstream_module.write("go", checksums, "v1.37.2" if changed == "content" else "v1.37.3", tmp_path)
    assert not (tmp_path / "go.mod").exists()


def test_the_command_pins_every_version(
    tmp_path: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(tmp_path / "state", tmp_path / "cache", "dljob", go_dir=tmp_path / "go")
    monkeypatch.setattr(cli, "settings_from", lambda: settings)
    monkeypatch.setattr(gobuild, "go_tool", lambda: "go")
    assert cli.main(["pin"]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    for minor, path in zip(versions.KUBERNETES, written, strict=True):
        assert path == tmp_path / f"go/kubernetes-{minor}/go.sum"
        assert f"k8s.io/kubernetes {versions.KUBERNETES[minor].version} h1:k=\n" in path.read_text()
