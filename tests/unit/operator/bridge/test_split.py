"""Which entries of watches.yaml ansible-operator supports."""

from __future__ import annotations

from pathlib import Path

import yaml

from dljob_operator.ansible_operator_bridge.split import split, with_watches_file, write_without
from dljob_operator.watches import GVK, Watch, load_watches

ROOT = Path(__file__).resolve().parents[4]


def watch(group: str, version: str, kind: str) -> Watch:
    return Watch(GVK(group, version, kind), role=Path("/role"))


def test_the_first_of_a_kind_and_version_is_ansible_operators() -> None:
    watches = [
        watch("a.example.com", "v1", "MXJob"),
        watch("b.example.com", "v1alpha1", "MXJob"),
        watch("c.example.com", "v1", "MxJob"),
        watch("d.example.com", "v1", "TFJob"),
    ]
    theirs, ours = split(watches)
    assert [w.gvk.group for w in theirs] == ["a.example.com", "b.example.com", "d.example.com"]
    assert [w.gvk.group for w in ours] == ["c.example.com"]


def test_what_is_written_for_it_names_no_kind_and_version_twice(tmp_path: Path) -> None:
    source = ROOT / "watches.yaml"
    theirs, ours = split(load_watches(source))
    assert [str(w.gvk) for w in ours] == ["mpba.fbk.eu/v1 MXJob"]
    write_without(source, ours, tmp_path / "watches.yaml")
    assert [w.gvk for w in load_watches(tmp_path / "watches.yaml")] == [w.gvk for w in theirs]
    before = {(e["group"], e["kind"]): e for e in yaml.safe_load(source.read_text())}
    for entry in yaml.safe_load((tmp_path / "watches.yaml").read_text()):
        assert entry == before[entry["group"], entry["kind"]]


def test_its_command_line_names_that_file_and_no_other() -> None:
    path = Path("/tmp/w.yaml")
    for given in (["--watches-file=./watches.yaml", "--x"], ["--watches-file", "./watches.yaml", "--x"], ["--x"]):
        assert with_watches_file(["ansible-operator", "run", *given], path) == [
            "ansible-operator", "run", "--x", "--watches-file=/tmp/w.yaml",
        ]  # fmt: skip
