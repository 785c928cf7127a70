"""`dljob-operator convert`: converts manifests of jobs, without a cluster, by the logic of the collection."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.manifest_yaml import read_objects

from dljob_operator import manifest_yaml
from dljob_operator.declarations import declarations

TARGETS = ("kubeflow.org/v1", "dljob", "trainjob")

HELP = """\
Converts the jobs in the files and prints the manifests. What is lost is printed to stderr with the field and the
reason, and then the exit code is 1; of other differences there are notes. Objects that are no jobs are printed
unchanged, comments are lost. For `-` it reads the standard input."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of `dljob-operator`."""
    parser = commands.add_parser(
        "convert", help="convert manifests of jobs to another API flavor, or to Kubeflow Trainer v2", description=HELP
    )
    parser.set_defaults(do=run, log_level="warning", log_format="text")
    parser.add_argument(
        "--to",
        required=True,
        choices=TARGETS,
        help="kubeflow.org/v1; dljob: DLJob of this operator; trainjob: TrainJob of Kubeflow Trainer v2",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a YAML file with one or more objects, or -")


def run(options: argparse.Namespace) -> int:
    """Convert `options.files`. Return 1 if something is lost. Raises ValueError for a file that is no YAML."""
    return convert_files(options.files, options.to, sys.stdout, sys.stderr)


def convert_files(files: Sequence[str], to: str, out: TextIO, errors: TextIO) -> int:
    """Write the converted objects to `out` and the report to `errors`, and return the exit code."""
    # only here: no other command needs the logic of the collection
    from ansible_collections.dljob.operator.plugins.module_utils.logic.convert import convert as logic

    frameworks = [logic.declared(declaration) for _, declaration in declarations()]
    lost = False
    for name, manifest in (found for file in files for found in _objects(file)):
        if not logic.is_job(manifest, frameworks):
            _note(errors, name, manifest, "no job: unchanged")
            _write(out, manifest)
            continue
        try:
            conversion = logic.convert(manifest, to, frameworks)
        except logic.NotConvertible as error:
            lost = True
            _note(errors, name, manifest, f"not converted: {error}")
            continue
        for loss in conversion.report.losses:
            lost = True
            _note(errors, name, manifest, f"lost: {loss}")
        for note in conversion.report.notes:
            _note(errors, name, manifest, f"note: {note}")
        _write(out, conversion.manifest)
    return int(lost)


def _objects(file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        for _, found in read_objects(text):
            yield file, found
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{file}: {error}") from error


def _note(errors: TextIO, file: str, manifest: dict[str, Any], text: str) -> None:
    metadata = manifest.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else None
    print(f"{file}: {manifest.get('kind')} {name or '(no name)'}: {text}", file=errors)


def _write(out: TextIO, manifest: dict[str, Any]) -> None:
    out.write(f"---\n{manifest_yaml.write(manifest)}")
