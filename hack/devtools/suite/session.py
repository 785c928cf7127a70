"""What all tests of a run share: the cluster, its images, one operator. tests/conftest.py reads the record of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "DLJOB_TEST_SESSION"
"""Names the file that holds the record, for the tests' processes."""
LABEL = "dljob-test/operator"
"""On a job: its test has an operator of its own, and the shared one leaves the job alone."""
OPERATOR_ARGUMENTS = ("--install-crds", "--selector", f"!{LABEL}")


@dataclass(frozen=True)
class Session:
    """What is up already, so that no test process has to look."""

    kubeconfig: str = ""
    """Of the shared cluster; "" before it is up."""
    throwaway: bool = False
    """Whether it is ended after this run: what tests leave in it goes with it."""
    images: bool = False
    """Whether its registry has all example images."""
    operator_log: str = ""
    """The shared operator's log; "" where none runs."""

    def write(self, path: Path) -> None:
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(self)), encoding="utf-8")
        scratch.replace(path)


def current(environment: Mapping[str, str] | None = None) -> Session:
    """The session of the run that started this process; an empty one where nothing is shared."""
    path = (os.environ if environment is None else environment).get(VARIABLE, "")
    return Session(**json.loads(Path(path).read_text(encoding="utf-8"))) if path else Session()
