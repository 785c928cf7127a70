"""The command line: ``python -m devtools.checks.mutation [--group logic] [--sample N] [--seed N] [--module PART]``."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devtools.checks.mutation import layout, mutants, survivors
from devtools.checks.mutation.fork import end_descendants
from devtools.paths import ROOT
from devtools.testbed.base.termination import ends_main_thread

REASONS = ROOT / "tests" / "mutation" / "survivors.toml"
BUDGET = 4.0
RESULTS = ROOT / ".build" / "mutation" / "results.jsonl"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m devtools.checks.mutation", description="Mutation testing of the product."
    )
    parser.add_argument("--group", action="append", choices=sorted(layout.GROUPS), help="(default: all)")
    parser.add_argument(
        "--module", action="append", default=[], metavar="PART", help="only modules with PART in their path"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants of each group (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--tests", action="append", metavar="FILE", help="only these test files (default: all)")
    parser.add_argument(
        "--budget",
        type=float,
        default=BUDGET,
        metavar="SECONDS",
        help=f"of CPU for a mutant's tests (default: {BUDGET})",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are kept")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--resume", action="store_true", help="keep the results of modules that have not changed")
    which.add_argument("--again", action="store_true", help="only the survivors of the last run without a reason")
    parser.add_argument("--table", action="store_true", help="print the table of the last run, and run nothing")
    options = parser.parse_args(argv)
    known = survivors.load(REASONS)
    if options.table:
        return _report(_rows(options.results), known)
    rows = _rows(options.results)
    kept: list[survivors.Row] = []
    if options.again:
        chosen, kept = _again(survivors.unexplained(rows, known)), rows
    else:
        samples = [
            mutants.sample(_candidates(group, options.module), options.sample, options.seed)
            for group in options.group or layout.GROUPS
        ]
        # in turn, so that an interrupted run has judged some of each group
        chosen = [mutant for turn in itertools.zip_longest(*samples) for mutant in turn if mutant is not None]
    if options.resume:
        kept = _unchanged(rows)
        judged = {_identity(row) for row in kept}
        chosen = [mutant for mutant in chosen if _identity(dataclasses.asdict(mutant)) not in judged]
    with ends_main_thread(), tempfile.TemporaryDirectory(prefix="dljob-mutation-") as folder:
        _keep(options.results, kept)
        run = {"tests": options.tests or layout.test_files(ROOT), "budget": options.budget}
        try:
            _run(Path(folder), chosen, run, options.results)
        finally:
            if options.again:  # also of an interrupted run
                _keep(options.results, survivors.latest(_rows(options.results), len(kept)))
    return _report(_rows(options.results), known)


def _candidates(group: str, parts: Sequence[str]) -> list[mutants.Mutant]:
    modules = [m for m in layout.modules(ROOT, group) if not parts or any(part in m for part in parts)]
    return [mutant for module in modules for mutant in mutants.of_module(ROOT, module)]


def _unchanged(rows: Sequence[survivors.Row]) -> list[survivors.Row]:
    """The rows of modules whose text is that of the run: the tests may be others."""
    digests = {name: _digest(name) for name in {row["module"] for row in rows}}
    return [row for row in rows if row.get("digest") == digests[row["module"]]]


def _digest(module: str) -> str:
    path = ROOT / module
    return mutants.digest(path.read_text(encoding="utf-8")) if path.is_file() else ""


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[field.name] for field in dataclasses.fields(mutants.Mutant))


def _keep(path: Path, rows: Sequence[survivors.Row]) -> None:
    """Begin the file of results with ``rows`` of an earlier run; their numbers are not those of this run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps({**row, "id": None}) + "\n" for row in rows)
    replacement = path.with_name(f"{path.name}.new")
    replacement.write_text(text, encoding="utf-8")
    replacement.replace(path)


def _again(rows: Sequence[survivors.Row]) -> list[mutants.Mutant]:
    """The mutants of earlier survivors, found by what they change: lines may have moved since."""
    wanted = {(row["module"], row["before"], row["after"]) for row in rows}
    found = []
    for module in sorted({module for module, _, _ in wanted}):
        source = (ROOT / module).read_text(encoding="utf-8")
        for mutant in mutants.of_module(ROOT, module):
            code = mutants.mutated(source, mutant)
            if code is not None:
                change = mutants.change(source, code)
                if (module, change.before, change.after) in wanted:
                    found.append(mutant)
    return found


def _run(folder: Path, chosen: Sequence[mutants.Mutant], run: Mapping[str, Any], results: Path) -> None:
    """Judge the mutants in a copy of the tree, in a process that ends with this one."""
    tree = layout.copy(folder)
    plan = folder / "plan.json"
    plan.write_text(
        json.dumps({"mutants": [dataclasses.asdict(mutant) for mutant in chosen], **run}),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "devtools.checks.mutation.harness", str(plan), str(results.absolute())]
    child = subprocess.Popen(command, cwd=tree, env=layout.environment(folder))
    try:
        if child.wait():
            sys.exit(f"the tests of the mutants ended with {child.returncode}")
    finally:
        end_descendants(os.getpid())


def _rows(path: Path) -> list[survivors.Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def _report(rows: list[survivors.Row], known: list[survivors.Survivor]) -> int:
    """Print the tables; 1 where a mutant has survived without a reason."""
    for by in ("group", "module"):
        print("\n".join(["", *survivors.table(rows, known, by)]))
    rest = survivors.unexplained(rows, known)
    print(f"\n{len(rows)} mutants, {len(rest)} of them survived without a reason in {REASONS.relative_to(ROOT)}")
    return 1 if rest else 0


if __name__ == "__main__":
    sys.exit(main())
