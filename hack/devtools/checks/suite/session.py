"""A record of the resources that all tests of a run share, which tests/conftest.py reads: cluster, images, operator."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from devtools.build.images import context, definition
from devtools.testbed.base.settings import settings_from

VARIABLE = "DLJOB_TEST_SESSION"
"""The environment variable with the path of the record, for the tests' processes."""
LABEL = "dljob-test/operator"
"""Label of a job whose test has a separate operator; the shared operator ignores the job."""
OPERATOR_ARGUMENTS = ("--install-crds", "--config-namespace", "default", "--selector", f"!{LABEL}")
ANSIBLE_OPERATOR = "DLJOB_ANSIBLE_OPERATOR"
"""The environment variable with the path of a real ansible-operator, to be the engine of the shared operator."""


@dataclass(frozen=True)
class OperatorCommand:
    """How the shared operator is started, and a text that it prints when it is ready."""

    words: tuple[str, ...]
    ready: str


def operator_command(environment: Mapping[str, str] | None = None) -> OperatorCommand:
    """The embedded engine, or the bridge around the ansible-operator that the environment names."""
    binary = (os.environ if environment is None else environment).get(ANSIBLE_OPERATOR, "")
    if binary:
        return OperatorCommand((*ansible_operator_command(binary), *OPERATOR_ARGUMENTS), "Starting workers")
    return OperatorCommand((sys.executable, "-m", "dljob_operator", "run", *OPERATOR_ARGUMENTS), "ready:")


def ansible_operator_command(binary: str) -> tuple[str, ...]:
    """The bridge around that ansible-operator, with the compiled shim as in the image."""
    program = Path(__file__).with_name("ansible_operator.py")
    return sys.executable, str(program), binary, "--shim", str(compiled_shim())


def compiled_shim() -> Path:
    """The folder with the image's `ansible-runner`, which is compiled once. Raises ClusterError without Go."""
    (program,) = definition.load("operator").go_programs
    return context.go_program(program, settings_from().cache_dir).parent


@dataclass(frozen=True)
class Session:
    """The resources that are up, so that test processes need not check."""

    kubeconfig: str = ""
    """Path of the shared cluster's kubeconfig; "" before it is up."""
    throwaway: bool = False
    """Whether the cluster is deleted after this run, with all objects that the tests leave."""
    images: bool = False
    """Whether the cluster's registry has all example images."""
    operator_log: str = ""
    """Path of the shared operator's log; "" if none runs."""

    def write(self, path: Path) -> None:
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(self)), encoding="utf-8")
        scratch.replace(path)


def current(environment: Mapping[str, str] | None = None) -> Session:
    """The session of the run that started this process; an empty one if nothing is shared."""
    path = (os.environ if environment is None else environment).get(VARIABLE, "")
    return Session(**json.loads(Path(path).read_text(encoding="utf-8"))) if path else Session()
