"""Where the operator's ConfigMap may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.config_namespaces import config_namespaces


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ("ml", "", ("ml",)),
        ("ml", " default ", ("ml", "default")),
        ("ml", "ml", ("ml",)),
        ("", "default", ("default",)),
        ("", "", ()),
    ],
)
def test_the_own_one_and_none_that_is_not_named(
    tmp_path: Path, own: str, other: str, expected: tuple[str, ...]
) -> None:
    environ = {"POD_NAMESPACE": own, "DLJOB_CONFIG_NAMESPACE": other}
    assert config_namespaces(environ, tmp_path / "none") == expected


@pytest.mark.parametrize("other", ["a/b", "../secrets", "A", "-a", "a" * 64])
def test_what_names_no_namespace_is_refused(tmp_path: Path, other: str) -> None:
    with pytest.raises(ValueError, match=r"DLJOB_CONFIG_NAMESPACE: .* is not the name of a namespace"):
        config_namespaces({"DLJOB_CONFIG_NAMESPACE": other}, tmp_path / "none")
