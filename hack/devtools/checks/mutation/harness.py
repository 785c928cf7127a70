"""Runs in the copy of the tree: judges each mutant by the tests that execute its statement.

Two ways. Most mutants change the body of a function: the tests are collected once, and for each mutant a child is
forked in which the function has the mutant's code. That costs a fork and the tests that execute the statement. What has
an effect while modules are imported or tests are collected (a constant, a declaration that a test module loads) needs a
child that imports everything anew; it is forked before any of the product's modules is imported. In both the changed
file is also on disk, for tests that start a process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import coverage
import pytest

from devtools.checks.mutation import baseline, layout, mutants, swap
from devtools.checks.mutation.baseline import Baseline
from devtools.checks.mutation.fork import adopt_orphans, forked
from devtools.checks.mutation.mutants import Mutant

KILLED, SURVIVED, TIMEOUT, UNTESTED = "killed", "survived", "timeout", "untested"
PRELOADED = ("hypothesis", "yaml", "kubernetes.client", "kubernetes.config", "kubernetes.watch", "urllib3", "jinja2")
"""Imported before the first fork: libraries that the tests use and that keep no state of the product."""
OPTIONS = (
    *("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-o", "addopts=--strict-markers --import-mode=importlib"),  # without those of the terminal
    "--hypothesis-seed=0",
)
_NOT_LOADED = 77
"""The exit status of a child that has not loaded what the mutant changes."""


def main(arguments: list[str]) -> int:
    """``harness PLAN RESULTS``: the file of the mutants and test files, and that of the results."""
    plan, results = map(Path, arguments)
    adopt_orphans()
    for name in PRELOADED:
        importlib.import_module(name)
    planned = json.loads(plan.read_text(encoding="utf-8"))
    chosen = [Mutant(**row) for row in planned["mutants"]]
    work = Work(Path.cwd(), plan.parent, chosen, results, planned["budget"])
    # the product is imported in a child only, so that this process can fork others that import it anew
    status = forked(lambda: _in_place(work, planned["tests"]))
    if status:
        print(f"the first part ended with {status}", file=sys.stderr)
        return 1
    measured = baseline.read(work.measured)
    done = {json.loads(line)["id"] for line in results.read_text(encoding="utf-8").splitlines()}
    for number, mutant in enumerate(chosen):
        tests = work.tests(mutant, measured)
        if number not in done and tests:
            work.judge(number, measured, lambda tests=tests: _anew(tests))  # type: ignore[misc]
        elif number not in done and (code := mutants.mutated(work.source(mutant), mutant)) is not None:
            work.add(number, code, UNTESTED, 0.0)
    return 0


class Work:
    """The mutants, numbered, and the file of results: one JSON object a line."""

    def __init__(self, root: Path, scratch: Path, chosen: list[Mutant], results: Path, budget: float) -> None:
        self.root, self.mutants, self.measured = root, chosen, scratch / "baseline.json"
        self._budget = budget
        self._results, self._begun, self._stamp = results, time.monotonic(), int(time.time()) + 1000
        results.touch()

    def source(self, mutant: Mutant) -> str:
        return (self.root / mutant.module).read_text(encoding="utf-8")

    def tests(self, mutant: Mutant, measured: Baseline) -> list[str]:
        """The tests that judge ``mutant``."""
        return measured.tests(mutant, self._budget)

    def judge(self, number: int, measured: Baseline, run: Callable[[], int]) -> None:
        """Run ``run`` in a child while the changed file is on disk; its status is that of the tests."""
        mutant = self.mutants[number]
        code = mutants.mutated(self.source(mutant), mutant)
        if code is None:
            return
        expected = sum(measured.duration[test] for test in self.tests(mutant, measured))
        begun = time.monotonic()
        with self._changed(mutant, code):
            status = forked(run, cpu=10 + 5 * expected, idle=15)
        if status != _NOT_LOADED:
            state = SURVIVED if status == 0 else TIMEOUT if status is None else KILLED
            self.add(number, code, state, time.monotonic() - begun)

    def add(self, number: int, code: str, state: str, seconds: float) -> None:
        mutant = self.mutants[number]
        source = self.source(mutant)
        change = mutants.change(source, code)
        row = {"id": number, **dataclasses.asdict(mutant), **dataclasses.asdict(change), "state": state}
        with self._results.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**row, "digest": mutants.digest(source), "seconds": round(seconds, 2)}) + "\n")
        elapsed = time.monotonic() - self._begun
        if state in (SURVIVED, UNTESTED):
            print(f"{state} {mutant.module}:{mutant.line} {change.before!r} -> {change.after!r}", flush=True)
        if number % 50 == 49:
            print(f"    {number + 1} of {len(self.mutants)} mutants, {elapsed:.0f} s", flush=True)

    @contextlib.contextmanager
    def _changed(self, mutant: Mutant, code: str) -> Iterator[None]:
        """The changed file, with a time of its own: Python recognizes stale bytecode by whole seconds and the size."""
        path = self.root / mutant.module
        before, state = path.read_bytes(), path.stat()
        self._stamp += 2
        path.write_text(code, encoding="utf-8")
        os.utime(path, (self._stamp, self._stamp))
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


class Outcome:
    """A pytest plugin that keeps what fails, and runs ``chosen`` tests only, in order."""

    def __init__(self, chosen: list[str] | None = None) -> None:
        self.failed: list[str] = []
        self._chosen = chosen

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._chosen is not None:
            order = {name: place for place, name in enumerate(self._chosen)}
            items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


class Session:
    """A pytest plugin: instead of running the tests that it has collected, it judges mutants with them."""

    def __init__(self, work: Work, traced: coverage.Coverage) -> None:
        self._work, self._traced = work, traced

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        forked(lambda: self._measure(session, list(items.values())))
        self._traced.stop()
        measured = baseline.read(self._work.measured)
        print(f"{len(items)} tests, {sum(measured.duration.values()):.0f} s, failed: {measured.failed}", flush=True)
        functions = swap.loaded_functions(self._work.root)
        for number, mutant in enumerate(self._work.mutants):
            tests = [items[name] for name in self._work.tests(mutant, measured)]
            if not tests or measured.at_import(mutant):
                continue

            def run(mutant: Mutant = mutant, tests: list[pytest.Item] = tests) -> int:
                if not swap.swap(self._work.root / mutant.module, functions):
                    return _NOT_LOADED
                return int(bool(_run(session, tests, stop=True).failed))

            self._work.judge(number, measured, run)
        return True

    def _measure(self, session: pytest.Session, items: list[pytest.Item]) -> int:
        """Run all tests, each with a context of its own; those that fail without a change judge none."""
        outcome, duration = Outcome(), {}
        for item in items:
            self._traced.switch_context(item.nodeid)
            begun = time.process_time()  # that does not depend on what else runs on the machine
            outcome.failed += _run(session, [item], stop=False).failed
            duration[item.nodeid] = time.process_time() - begun
        self._traced.stop()
        data = self._traced.get_data()
        files = {os.path.relpath(file, self._work.root): file for file in data.measured_files()}
        lines = {module: data.contexts_by_lineno(file) for module, file in files.items()}
        passed = {test: seconds for test, seconds in duration.items() if test not in outcome.failed}
        baseline.write(self._work.measured, Baseline(passed, lines, outcome.failed))
        return 0


def _in_place(work: Work, tests: list[str]) -> int:
    include = [f"{work.root}/{folder}/*" for folder in layout.GROUPS.values()]
    traced = coverage.Coverage(data_file=None, include=include, config_file=False)
    traced.start()
    status = pytest.main([*OPTIONS, *tests], plugins=[Session(work, traced)])
    return 0 if status == pytest.ExitCode.OK else int(status)


def _anew(tests: list[str]) -> int:
    """All modules imported again, with the change. Any end of pytest but success kills the mutant."""
    sys.dont_write_bytecode = True
    _silence()
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    return int(pytest.main([*OPTIONS, "-x", *files], plugins=[Outcome(tests)]))


def _run(session: pytest.Session, items: list[pytest.Item], stop: bool) -> Outcome:
    outcome = Outcome()
    session.config.pluginmanager.register(outcome)
    _silence()
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if outcome.failed and stop:
            break
    session.config.pluginmanager.unregister(outcome)
    return outcome


def _silence() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
