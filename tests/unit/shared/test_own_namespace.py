"""The namespace that a process runs in."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.shared.own_namespace import own_namespace


def test_the_variable_comes_first_then_the_service_account(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert own_namespace({}, file) == ""
    file.write_text("ml\n")
    assert own_namespace({}, file) == "ml"
    assert own_namespace({"POD_NAMESPACE": " other "}, file) == "other"
    assert own_namespace({"POD_NAMESPACE": " "}, file) == "ml"
