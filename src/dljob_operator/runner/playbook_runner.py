"""Load Ansible once in the fork server and run it once in each child. Import this module only in the fork server.

A run reuses what the warm-up has cached (parsed YAML, loaded plugins, compiled expressions), but has its own variable
manager, so that it cannot see facts of other runs. A process must not run twice, because ansible-core keeps state in
modules.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from ansible import constants as C
from ansible.cli.playbook import PlaybookCLI
from ansible.errors import AnsibleError
from ansible.executor.playbook_executor import PlaybookExecutor
from ansible.playbook import Playbook
from ansible.playbook.block import Block
from ansible.plugins.loader import (
    action_loader,
    add_all_plugin_dirs,
    connection_loader,
    init_plugin_loader,
    module_loader,
    shell_loader,
)
from ansible.template import Templar
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible.vars.manager import VariableManager

from dljob_operator.runner import collect, rpc_server
from dljob_operator.runner.messages import RunEnding, RunRequest, RunResult, Target, TaskFailure
from dljob_operator.runner.process_tree import RUN_DIRECTORY
from dljob_operator.runner.templating import mark

# The inventory that ansible-operator passes to ansible-runner; naming the interpreter avoids its discovery.
_INVENTORY = 'localhost ansible_connection=local ansible_python_interpreter="{{ ansible_playbook_python }}"\n'
_POLL_INTERVAL = 0.5  # seconds
_GRACE = 1.0  # seconds for the end of a task process whose result has come
# A play without effect and typical expressions of roles, to fill the caches of Ansible and Jinja.
_WARM_UP = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Warm up
      ansible.builtin.debug:
        msg: "{{ item | upper }}"
      loop: [a]
      when: "'a' in ['a', 'b']"
"""
_EXPRESSIONS = (
    "{{ (a.b | default([1])) | map('string') | join(',') }}",
    "{{ 'x' if a is defined else omit }}",
)


class PlaybookRunner:
    """The configured targets, ready to run. `scratch` is a directory for generated files."""

    def __init__(self, targets: list[Target], scratch: Path, inventory: str | None) -> None:
        """Load Ansible for `targets`; `inventory` replaces the built-in one, as ANSIBLE_INVENTORY does."""
        if inventory is None:
            hosts = scratch / "hosts"
            hosts.write_text(_INVENTORY)
            inventory = str(hosts)
        self._targets = {target.name: target for target in targets}
        self.unloaded = dict(self._targets)
        """What is to be loaded yet."""
        self._playbooks = {target.name: self._playbook(target, scratch) for target in targets}
        warm_up = scratch / "warm_up.yml"
        warm_up.write_text(_WARM_UP)
        cli = PlaybookCLI(["ansible-playbook", "-i", inventory, str(warm_up)])
        cli.parse()
        init_plugin_loader()
        # Only after Ansible's own loader of collections is in place: a package that Python's loaded stays without the
        # metadata that Ansible needs to find the collection's plugins.
        from ansible_collections.dljob.operator.plugins.module_utils.shared import worker_protocol

        self._protocol = worker_protocol
        self.declarations: dict[str, worker_protocol.Declaration] = {}
        """What the roles reported when they were loaded, by target; their workers are the same."""
        self._loader, self._inventory, self._variables = cli._play_prereqs()
        self._version = cli.version_info(gitinfo=False)
        self._warm_up = warm_up

    def warm(self) -> list[TaskFailure]:
        """Run a play without effect, to load what every run uses, and return its errors.

        The process has no threads afterwards, unless a plugin has started some.
        """
        rpc_server.put_off()
        with _without_traces():
            failures = self._run(self._warm_up, {}, quiet=True).failures
            self._warm_worker()
        return list(failures)

    def load(self, name: str) -> list[TaskFailure]:
        """Run the `unloaded` target `name`, if it can run without effect, else load its tasks; return the errors.

        Targets of equal roles and variables have one declaration.
        """
        target = self.unloaded.pop(name)
        equal = (one.name for one in self._targets.values() if dataclasses.replace(one, name=name) == target)
        if known := next(filter(None, map(self.declarations.get, equal)), None):
            self.declarations[name] = known
            return []
        playbook = self._playbooks[name]
        with self._search_paths(target), _without_traces():
            if target.batchable:
                result = self._run(playbook, self._no_jobs(target), quiet=True)
                failures = list(result.failures)
                self._note_declaration(target, result)
            else:
                failures = self._load(playbook)
        where = f"{target.role or target.playbook}, while preloading"
        return [TaskFailure(where, str(failure)) for failure in failures]

    def pool_of(self, name: str) -> str:
        """The name of the pool of long-lived workers that serve the target `name`.

        Targets whose roles reported a declaration share a pool, if they connect to the same cluster.
        """
        declaration = self.declarations.get(name)
        if declaration is None:
            return name
        cluster = [declaration.arguments.get(key) for key in ("kubeconfig", "context")]
        return " ".join(["shared", *map(str, filter(None, cluster))])

    def _no_jobs(self, target: Target) -> dict[str, Any]:
        fixed = {name: value for name, value in target.fixed.items() if name != self._protocol.WORKER_VAR}
        return dict(mark({**fixed, self._protocol.BATCH_VAR: []}, frozenset()))

    def _note_declaration(self, target: Target, result: RunResult) -> None:
        reported = next((r["declaration"] for r in result.reports if r.get("declaration")), None)
        if reported is not None and not result.failures:
            self.declarations[target.name] = self._protocol.Declaration(reported["arguments"], reported["files"])

    def run(self, request: RunRequest) -> RunResult:
        """Run a target in this process, which must end afterwards."""
        rpc_server.start_with_next_run()
        target = self._targets[request.target]
        playbook = self._playbooks[target.name]
        if request.facts and target.role is not None:
            playbook = self._playbook(target, Path(tempfile.gettempdir()), facts=True)
        with self._search_paths(target):
            return self._run(playbook, mark(request.values, request.unsafe))

    def serve_batches(self, name: str) -> RunResult:
        """Run a target in this process as a long-lived worker, until its task has no more batches."""
        rpc_server.start_with_next_run()
        # Ansible polls its task every millisecond by default; the task of a worker runs for minutes.
        C.DEFAULT_INTERNAL_POLL_INTERVAL = _POLL_INTERVAL
        target = self._targets[name]
        with self._search_paths(target):
            return self._run(
                self._playbooks[name], mark({**target.fixed, self._protocol.WORKER_VAR: True}, frozenset())
            )

    def _run(self, playbook: Path, extra_vars: dict[str, Any], *, quiet: bool = False) -> RunResult:
        variables = VariableManager(loader=self._loader, inventory=self._inventory, version_info=self._version)
        # The only public way to set extra variables is the command line, which would cost a file and a YAML
        # parse for every run.
        variables._extra_vars = extra_vars
        collected = collect.start(quiet=quiet)
        executor = PlaybookExecutor(
            playbooks=[str(playbook)],
            inventory=self._inventory,
            variable_manager=variables,
            loader=self._loader,
            passwords={},
        )
        stats = collected.stats = executor._tqm._stats
        try:
            code = executor.run()
        except Exception as error:
            collected.failures.append(TaskFailure("", _describe(error)))
            code = 0
        finally:
            executor._tqm._connection_lockfile.close()  # frames of plugins that it has imported may keep it
        if code and not collected.failures:
            collected.failures.append(TaskFailure("", f"Ansible ended with code {code} and named no failed task"))
        return RunResult(
            RunEnding.COMPLETED,
            tuple(collected.failures),
            {name: sum(getattr(stats, name).values()) for name in _COUNTS},
            tuple(collected.reports),
            tasks=tuple(collected.tasks),
        )

    def _warm_worker(self) -> None:
        """Load what Ansible's task process, a fork of its own, would otherwise load for each task."""
        connection_loader.get("local", class_only=True)
        shell_loader.get("sh")
        templar = Templar(loader=self._loader, variables={"a": {"b": ["c"]}, "omit": "o"})
        for expression in mark({"e": list(_EXPRESSIONS)}, frozenset())["e"]:
            templar.template(expression)

    def _load(self, playbook: Path) -> list[TaskFailure]:
        """Parse a playbook with its roles and load the plugins of its tasks, so that children need not."""
        try:
            for play in Playbook.load(str(playbook), self._variables, self._loader).get_plays():
                for block in play.compile():
                    _load_plugins(block)
        except Exception as error:
            return [TaskFailure("", _describe(error))]
        return []

    @contextlib.contextmanager
    def _search_paths(self, target: Target) -> Iterator[None]:
        """Add the roles next to a role, or the plugins and collections next to a playbook, to the search paths."""
        roles, collections = C.DEFAULT_ROLES_PATH, AnsibleCollectionConfig.playbook_paths
        if target.playbook is not None:
            add_all_plugin_dirs(str(target.playbook.parent))
            AnsibleCollectionConfig.playbook_paths = [str(target.playbook.parent)]
        elif target.role is not None:
            C.DEFAULT_ROLES_PATH = [str(target.role.parent), *(roles or ())]
        try:
            yield
        finally:
            C.DEFAULT_ROLES_PATH = roles
            AnsibleCollectionConfig.playbook_paths = collections

    @staticmethod
    def _playbook(target: Target, scratch: Path, *, facts: bool = False) -> Path:
        if target.playbook is not None:
            return target.playbook
        assert target.role is not None
        play = {
            "name": f"Reconcile {target.name}",
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": facts,
            # Unchecked against its argument specification: that is a task of its own, a fork and half a run's
            # time, and an engine's arguments are not a user's.
            "tasks": [{"ansible.builtin.import_role": {"name": target.role.name, "rolespec_validate": False}}],
        }
        with tempfile.NamedTemporaryFile("w", dir=scratch, suffix=".yml", delete=False) as file:
            yaml.safe_dump([play], file, sort_keys=False)
        return Path(file.name)


@contextlib.contextmanager
def _without_traces() -> Iterator[None]:
    """Undo what a run leaves in this process: handlers of signals, and task processes that ended.

    Without garbage collections, each of which writes to all objects, a start takes a fifth less processor time.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    gc.disable()
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for process in multiprocessing.active_children():
            process.join(_GRACE)
        gc.enable()


_COUNTS = ("ok", "changed", "failures", "dark", "skipped", "rescued", "ignored")


def use_scratch(directory: Path) -> None:
    """Keep this process's temporary files in `directory`, which the fork server removes."""
    directory.mkdir(mode=0o700)
    C.DEFAULT_LOCAL_TMP = str(directory)
    tempfile.tempdir = str(directory)
    os.environ[RUN_DIRECTORY] = str(directory)


def _describe(error: Exception) -> str:
    """Return the message of an error with its file and line; in ansible-core 2.18 the message includes them."""
    if not isinstance(error, AnsibleError):  # raised by a plugin while it was loaded
        return f"{type(error).__name__}: {error}"
    context = getattr(error, "_formatted_source_context", None)
    return f"{error} ({context.splitlines()[0]})" if context else str(error)


def _load_plugins(block: Block) -> None:
    for task in [*block.block, *block.rescue, *block.always]:
        if isinstance(task, Block):
            _load_plugins(task)
        elif action_loader.get(task.action, class_only=True) is None:
            module_loader.find_plugin(task.action)
