"""Go module files for Kubernetes, whose own ones name folders beside it that its published module does not have.

Kubernetes' ``go.mod`` replaces its libraries ("staging modules") by relative paths. Each library is also published as a
module of its own, so the same file with versions in place of the paths builds what upstream builds. Only the checksums
of Kubernetes and of these libraries are committed: upstream's ``go.sum`` has all others, and is part of the module
whose checksum is.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from devtools.testbed.base import shell
from devtools.testbed.base.errors import ClusterError

PATH = "k8s.io/kubernetes"
MODULE = "dljob.operator/build/kubernetes"
SAMPLES = re.compile(r"^\s+k8s\.io/sample-.*\n", re.MULTILINE)
"""Lines about example programs: no command of Kubernetes uses them, and the module proxy lacks some of them."""
LIBRARY = re.compile(r"^\s+(?P<path>\S+) => \./staging/src/(?P=path)$", re.MULTILINE)


def library_version(version: str) -> str:
    """v0.37.2 from v1.37.2: the version under which a release publishes its libraries."""
    return "v0." + version.removeprefix("v1.")


def libraries(go_mod: str) -> tuple[str, ...]:
    """The paths of the libraries that Kubernetes' own ``go.mod`` replaces by folders, without the samples."""
    return tuple(match["path"] for match in LIBRARY.finditer(SAMPLES.sub("", go_mod)))


def module_file(go_mod: str, version: str) -> str:
    """A ``go.mod`` from that of Kubernetes: it requires Kubernetes ``version``, and its libraries as modules.

    Versions of all other modules, of Go, and the settings of its runtime stay as upstream has them. Samples
    are left out.
    """
    library = library_version(version)
    text = LIBRARY.sub(rf"\t\g<path> => \g<path> {library}", SAMPLES.sub("", go_mod))
    text = re.sub(r"^(\s+k8s\.io/\S+) v0\.0\.0$", rf"\1 {library}", text, flags=re.MULTILINE)
    return re.sub(
        rf"^module {re.escape(PATH)}$", f"module {MODULE}\n\nrequire {PATH} {version}", text, flags=re.MULTILINE
    )


def checksum_lines(downloads: Iterable[Mapping[str, Any]]) -> str:
    """Lines of a ``go.sum`` for what ``go mod download -json`` has reported, sorted."""
    lines = []
    for found in downloads:
        lines.append(f"{found['Path']} {found['Version']} {found['Sum']}")
        lines.append(f"{found['Path']} {found['Version']}/go.mod {found['GoModSum']}")
    return "".join(f"{line}\n" for line in sorted(lines))


def download(go: str, modules: Sequence[str]) -> list[Mapping[str, Any]]:
    """Download modules, each ``path@version``; go compares them with the checksum database unless that is off."""
    with tempfile.TemporaryDirectory() as folder:
        done = shell.run(
            [go, "mod", "download", "-json", *modules], cwd=Path(folder), env={"GOFLAGS": "", "GOWORK": "off"},
            fix="check that the Go module proxy (go env GOPROXY) is reachable",
        )  # fmt: skip
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        item, end = decoder.raw_decode(text)
        found.append(item)
        text = text[end:].lstrip()
    return found


def write(go: str, checksums: Path, version: str, target: Path) -> None:
    """Write ``go.mod`` and ``go.sum`` of Kubernetes ``version`` into ``target``, with the committed ``checksums``.

    Raises ClusterError if the downloaded module is not the one whose checksum is committed.
    """
    committed = checksums.read_text()
    (module,) = download(go, [f"{PATH}@{version}"])
    if f"{PATH} {version} {module['Sum']}\n" not in committed:
        raise ClusterError(
            f"{PATH}@{version} has the checksum {module['Sum']}, which is not in {checksums}",
            "after a change of the version: python -m devtools.testbed.cluster pin; else do not trust the module proxy",
        )
    upstream = Path(module["Dir"])
    (target / "go.mod").write_text(module_file((upstream / "go.mod").read_text(), version))
    (target / "go.sum").write_text((upstream / "go.sum").read_text() + committed)


def pin(go: str, checksums: Path, version: str) -> None:
    """Write the checksums of Kubernetes ``version`` and of its libraries, for a commit."""
    (module,) = download(go, [f"{PATH}@{version}"])
    names = libraries((Path(module["Dir"]) / "go.mod").read_text())
    library = library_version(version)
    found = download(go, [f"{name}@{library}" for name in names])
    checksums.parent.mkdir(parents=True, exist_ok=True)
    checksums.write_text(checksum_lines([module, *found]))
