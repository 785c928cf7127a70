"""What `dljob-operator run` and `serve` build from their options in the same way."""

from __future__ import annotations

import argparse
import os

from ansible_collections.dljob.operator.plugins.module_utils.shared import settings
from ansible_collections.dljob.operator.plugins.module_utils.shared.config_namespaces import config_namespaces

from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.kube import KubeApi, find_kubeconfig
from dljob_operator.engine.requests import targets
from dljob_operator.options import run_environ
from dljob_operator.runner import RunnerClient
from dljob_operator.watches import ProcessState, default_watches_file, load_watches


class Operator:
    """The watches file, the environment of the runs, and the settings of the controllers. Nothing is started yet.

    Raises WatchesError for the watches file, and ValueError for a setting.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.process = ProcessState.of_this_process()
        self.watches_file = options.watches_file or default_watches_file(self.process)
        self.watches = load_watches(self.watches_file, self.process)
        self._kubeconfig = find_kubeconfig(options.kubeconfig, os.environ)
        self.environ = run_environ(self._kubeconfig, options)
        """Of the runs, up to `start_runner`."""
        self.settings = ControllerSettings(
            namespaces=options.namespace,
            max_concurrent=options.max_concurrent_reconciles,
            run_timeout=options.run_timeout,
            config_namespaces=config_namespaces(self.environ),
            gang=settings.GANG_SCHEDULER_NAME.of(self.environ),
            kueue=bool(settings.KUEUE.of(self.environ)),
            usage=settings.USAGE.of(self.environ) == "on",
        )

    def connect(self) -> KubeApi:
        """Return the API server's connection. Raises NoCluster."""
        return KubeApi.connect(self._kubeconfig)

    def start_runner(self) -> RunnerClient:
        """Start to load Ansible, which takes longer than everything else."""
        options = self._options
        runner = RunnerClient(
            targets(self.watches), options.max_concurrent_reconciles, self.environ, preforked=options.preforked
        )
        runner.start()
        return runner
