"""Ansible itself: warmed once in the fork_server, run once in each child. Import this module in the fork_server only.

A run uses what the warming left in memory (parsed YAML, loaded plugins, compiled expressions), but a
variable manager of its own, so that no fact of another run is seen. A process must not run twice:
ansible-core keeps state in modules.
"""

from __future__ import annotations

import contextlib
import os
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

from dljob_operator.runner import collect
from dljob_operator.runner.batch_worker import LONG_LIVED
from dljob_operator.runner.messages import Failure, RunOutcome, RunRequest, RunResult, Target
from dljob_operator.runner.process_tree import RUN_DIRECTORY
from dljob_operator.runner.templating import mark

# The same inventory that ansible-operator hands to ansible-runner; the interpreter is given so that it is
# not sought.
_INVENTORY = 'localhost ansible_connection=local ansible_python_interpreter="{{ ansible_playbook_python }}"\n'
_UNHURRIED = 0.5  # seconds
# A play that does nothing, and expressions such as roles hold; both leave Ansible's and Jinja's caches
# filled.
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
        self._playbooks = {target.name: self._playbook(target, scratch) for target in targets}
        warm_up = scratch / "warm_up.yml"
        warm_up.write_text(_WARM_UP)
        cli = PlaybookCLI(["ansible-playbook", "-i", inventory, str(warm_up)])
        cli.parse()
        init_plugin_loader()
        self._loader, self._inventory, self._variables = cli._play_prereqs()
        self._version = cli.version_info(gitinfo=False)
        self._warm_up = warm_up

    def warm(self) -> Iterator[Failure]:
        """Run what can be run without effect, load the rest, and yield what is wrong with a target."""
        yield from self._run(self._warm_up, {}, quiet=True).failures
        self._warm_worker()
        for target in self._targets.values():
            with self._beside(target):
                playbook = self._playbooks[target.name]
                if target.batchable:
                    failures = list(self._run(playbook, {"dljob_batch": []}, quiet=True).failures)
                else:
                    failures = self._load(playbook)
                for failure in failures:
                    yield Failure(f"{target.role or target.playbook}, while warming", str(failure))

    def run(self, request: RunRequest) -> RunResult:
        """Run a target in this process, which must end afterwards."""
        target = self._targets[request.target]
        playbook = self._playbooks[target.name]
        if request.facts and target.role is not None:
            playbook = self._playbook(target, Path(tempfile.gettempdir()), facts=True)
        with self._beside(target):
            return self._run(playbook, mark(request.values, request.unsafe))

    def serve_batches(self, name: str) -> RunResult:
        """Run a target that stays, in this process, until its task finds no more work."""
        # Ansible asks a thousand times a second whether its one task has ended; here that is not soon.
        C.DEFAULT_INTERNAL_POLL_INTERVAL = _UNHURRIED
        target = self._targets[name]
        with self._beside(target):
            return self._run(self._playbooks[name], mark({**target.fixed, LONG_LIVED: True}, frozenset()))

    def _run(self, playbook: Path, extra_vars: dict[str, Any], *, quiet: bool = False) -> RunResult:
        variables = VariableManager(loader=self._loader, inventory=self._inventory, version_info=self._version)
        # There is no public way to set extra variables but the command line, whose parser would cost a file
        # and a YAML parse for every run.
        variables._extra_vars = extra_vars
        collected = collect.start(quiet=quiet)
        together = PlaybookExecutor(
            playbooks=[str(playbook)],
            inventory=self._inventory,
            variable_manager=variables,
            loader=self._loader,
            passwords={},
        )
        stats = collected.stats = together._tqm._stats
        try:
            code = together.run()
        except Exception as error:
            collected.failures.append(Failure("", _explain(error)))
            code = 0
        if code and not collected.failures:
            collected.failures.append(Failure("", f"Ansible ended with code {code} and named no failed task"))
        return RunResult(
            RunOutcome.COMPLETED,
            tuple(collected.failures),
            {name: sum(getattr(stats, name).values()) for name in _COUNTS},
            tuple(collected.reports),
            tasks=tuple(collected.tasks),
        )

    def _warm_worker(self) -> None:
        """Load here what a task's worker, a fork of its own, would load anew each time."""
        connection_loader.get("local", class_only=True)
        shell_loader.get("sh")
        templar = Templar(loader=self._loader, variables={"a": {"b": ["c"]}, "omit": "o"})
        for expression in mark({"e": list(_EXPRESSIONS)}, frozenset())["e"]:
            templar.template(expression)

    def _load(self, playbook: Path) -> list[Failure]:
        """Parse a playbook with its roles and load its tasks' plugins, so that a child need not."""
        try:
            for play in Playbook.load(str(playbook), self._variables, self._loader).get_plays():
                for block in play.compile():
                    _load_plugins(block)
        except Exception as error:
            return [Failure("", _explain(error))]
        return []

    @contextlib.contextmanager
    def _beside(self, target: Target) -> Iterator[None]:
        """Let a role's siblings be found, and a playbook's own plugins and collections, as ansible-runner does."""
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


_COUNTS = ("ok", "changed", "failures", "dark", "skipped", "rescued", "ignored")


def use_scratch(directory: Path) -> None:
    """Keep this process's temporary files in `directory`, which whoever waits for the process removes."""
    directory.mkdir(mode=0o700)
    C.DEFAULT_LOCAL_TMP = str(directory)
    tempfile.tempdir = str(directory)
    os.environ[RUN_DIRECTORY] = str(directory)


def _explain(error: Exception) -> str:
    """Return an error's message with the file and line that it is about; 2.18 has them in the message."""
    if not isinstance(error, AnsibleError):  # a plugin's own, while it was loaded
        return f"{type(error).__name__}: {error}"
    context = getattr(error, "_formatted_source_context", None)
    return f"{error} ({context.splitlines()[0]})" if context else str(error)


def _load_plugins(block: Block) -> None:
    for task in [*block.block, *block.rescue, *block.always]:
        if isinstance(task, Block):
            _load_plugins(task)
        elif action_loader.get(task.action, class_only=True) is None:
            module_loader.find_plugin(task.action)
