"""Starts and stops the resources that the tests of a run share, and writes their record (:mod:`suite.session`)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from devtools.checks.suite import plan, session
from devtools.checks.suite.programs import Programs
from devtools.checks.suite.session import VARIABLE, Session
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import lifecycle


class Shared:
    """The cluster, its images and the operator. Each method of ``setups`` returns an exit status; 0 is success."""

    def __init__(self, settings: Settings, programs: Programs, folder: Path, record: Path) -> None:
        self._settings = settings
        self._programs = programs
        self._operator_folder = folder / "operator"
        self._record = record
        self._session = Session()
        self._session.write(record)
        self._end_cluster = False
        self._other_cluster = settings.other_cluster
        self._others = set(self._scenarios())
        self.setups: Mapping[str, Callable[[], int]] = {
            plan.CLUSTER: self._cluster,
            plan.IMAGES: self._images,
            plan.OPERATOR: self._operator,
            plan.NO_OPERATOR: self._no_operator,
        }

    @property
    def apart(self) -> Mapping[str, str]:
        """The environment of the steps whose tests start a cluster of their own."""
        return {VARIABLE: "", "DLJOB_CLUSTER_DIR": str(self._other_cluster), "DLJOB_CLUSTER_NAME": ""}

    def end(self) -> None:
        """Stop everything that this run has started. A cluster that was up before stays up."""
        if self._session.operator_log:
            self._no_operator()
        # interrupted scenarios have not stopped their operators
        for record in self._scenarios():
            if record not in self._others:
                self._module("scenario's operator", "testbed.background", "stop", str(record.parent))
                self._forget_scenarios()
        if self._end_cluster:
            self._module("cluster down", "testbed.cluster", "down")
        if self._other_cluster.exists():  # also of a test that was killed
            self._module("load cluster down", "testbed.cluster", "down", **self.apart)

    def _scenarios(self) -> Iterator[Path]:
        """The records of the operators that molecule's scenarios started."""
        return iter(self._settings.operator_records())

    def _forget_scenarios(self) -> None:
        """Remove molecule's state, which would keep it from starting an operator that it believes to be running."""
        shutil.rmtree(self._settings.molecule_state_dir, ignore_errors=True)

    def _cluster(self) -> int:
        self._end_cluster = not lifecycle.exists(self._settings)
        if self._end_cluster:
            self._forget_scenarios()
        return self._module(plan.CLUSTER, "testbed.cluster", "up") or self._share(
            kubeconfig=str(self._settings.kubeconfig), throwaway=self._end_cluster
        )

    def _images(self) -> int:
        return self._module(plan.IMAGES, "build.images", "build") or self._share(images=True)

    def _operator(self) -> int:
        command = session.operator_command()
        start = (
            "testbed.background",
            "start",
            str(self._operator_folder),
            "--ready",
            command.ready,
            "--",
            *command.words,
        )
        # register the operator before it is ready, so that it is always stopped
        self._share(operator_log=str(self._operator_folder / "log"))
        return self._module(plan.OPERATOR, *start, KUBECONFIG=str(self._settings.kubeconfig))

    def _no_operator(self) -> int:
        self._share(operator_log="")
        return self._module(plan.NO_OPERATOR, "testbed.background", "stop", str(self._operator_folder))

    def _module(self, name: str, module: str, *arguments: str, **environment: str) -> int:
        status, _ = self._programs.run(name, [sys.executable, "-m", f"devtools.{module}", *arguments], environment)
        return status

    def _share(self, **changes: str | bool) -> int:
        self._session = replace(self._session, **changes)  # type: ignore[arg-type]
        self._session.write(self._record)
        return 0
