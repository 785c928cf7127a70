"""The documents name the versions of Kubernetes that the local cluster can have."""

import re

from devtools.paths import ROOT
from devtools.testbed.base import versions

DEFAULT = versions.KUBERNETES[versions.DEFAULT_KUBERNETES]


def tag(node_image: str) -> str:
    return node_image.partition(":")[2].partition("@")[0]


def document(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_every_choice_with_its_two_versions() -> None:
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\d.]+)`(, the default)? \| (\S+) \| (\S+) \|$", text, re.MULTILINE)
    assert rows == [
        (minor, ", the default" if one is DEFAULT else "", tag(one.node_image), one.version)
        for minor, one in versions.KUBERNETES.items()
    ]


def test_the_default() -> None:
    kind = versions.KIND.removeprefix("v").rpartition(".")[0]
    assert (
        f"| Kubernetes | {versions.DEFAULT_KUBERNETES} (kind {kind}: {tag(DEFAULT.node_image)} where its node image can "
        f"be pulled, as in CI, else {DEFAULT.version}) |" in document("docs/supported.md")
    )
    assert f"A fix is tested on Kubernetes {versions.DEFAULT_KUBERNETES}," in document("SECURITY.md")


def test_the_others() -> None:
    *supported, ended = (minor for minor in versions.KUBERNETES if minor != versions.DEFAULT_KUBERNETES)
    assert f"| Kubernetes | {', '.join(supported)} (" in document("docs/supported.md")
    assert f"| Kubernetes | {ended}, past its end of life |" in document("docs/supported.md")
    volcano = versions.VOLCANO.removeprefix("v")
    assert f"| Volcano | {volcano}, by `--gang-scheduler-name volcano` |" in document("docs/supported.md")
    assert f"| Kueue | {versions.KUEUE.removeprefix('v')}, by `--kueue workloads` |" in document("docs/supported.md")
