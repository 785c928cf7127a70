"""How the operator that all tests share is started, with either engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.checks.suite import session
from devtools.testbed import ansible_operator

from dljob_operator import cli
from dljob_operator.ansible_operator_bridge import supervise
from dljob_operator.watches import load_watches


def test_the_embedded_engine_is_the_default() -> None:
    command = session.operator_command({})
    assert command.words == (sys.executable, "-m", "dljob_operator", "run", *session.OPERATOR_ARGUMENTS)
    assert command.ready == "ready:"


def test_the_environment_names_an_ansible_operator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = session.operator_command({session.ANSIBLE_OPERATOR: "/bin/ansible-operator"})
    assert command.words[2] == ansible_operator.__file__
    monkeypatch.setenv(supervise.COMPILED, "")  # what it sets is then undone
    started: list[str] = []
    monkeypatch.setattr(ansible_operator.os, "execv", lambda _, words: started.extend(words))
    monkeypatch.setattr(ansible_operator, "WATCHES", tmp_path / "new" / "watches.yaml")
    ansible_operator.main([word for word in command.words[3:] if word != "--install-crds"])
    assert Path(os.environ[supervise.COMPILED], "ansible-runner").is_file()
    options = cli.parse(started[3:])
    assert (options.config_namespace, options.max_concurrent_reconciles) == ("default", 4)
    assert options.command[:3] == ["--", "/bin/ansible-operator", "run"]
    watches = load_watches(tmp_path / "new" / "watches.yaml")
    assert {watch.selector for watch in watches} == {f"!{session.LABEL}"}
    assert all(watch.role is not None and watch.role.is_absolute() for watch in watches)


def test_it_is_a_program_without_the_developers_path() -> None:
    words = [*session.operator_command({session.ANSIBLE_OPERATOR: "x"}).words[:3], "--help"]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    assert subprocess.run(words, capture_output=True, check=False, env=environ).returncode == 0


def test_other_selectors_are_refused() -> None:
    entry: dict[str, Any] = yaml.safe_load("{group: g, version: v1, kind: K}")
    with pytest.raises(ValueError, match="only the form '!label'"):
        ansible_operator.with_selector(entry, Path("/role"), "team=a")
