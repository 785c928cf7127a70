"""A record of the resources that all tests of a run share, which tests/conftest.py reads: cluster, images, operator."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from devtools.build.images.compiled_shim import compiled_shim
from devtools.testbed.operator import ANSIBLE_OPERATOR, BRIDGE_READY, READY, RUN, bridge_command

VARIABLE = "DLJOB_TEST_SESSION"
"""The environment variable with the path of the record, for the tests' processes."""
LABEL = "dljob-test/operator"
"""Label of a job whose test has a separate operator; the shared operator ignores the job."""
OPERATOR_ARGUMENTS = ("--install-crds", "--config-namespace", "default", "--selector", f"!{LABEL}")


@dataclass(frozen=True)
class OperatorCommand:
    """How the shared operator is started, and a text that it prints when it is ready."""

    words: tuple[str, ...]
    ready: str


def operator_command(environment: Mapping[str, str] | None = None) -> OperatorCommand:
    """The embedded engine, or the bridge around the ansible-operator that the environment names."""
    binary = (os.environ if environment is None else environment).get(ANSIBLE_OPERATOR, "")
    if binary:
        return OperatorCommand((*bridge_command(binary, compiled_shim()), *OPERATOR_ARGUMENTS), BRIDGE_READY)
    return OperatorCommand((*RUN, *OPERATOR_ARGUMENTS), READY)


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
