"""Starts `dljob-operator serve` around a real ansible-operator, with the options of `run` that tests use.

    python ansible_operator.py BINARY [--shim FOLDER] [--install-crds] [--config-namespace NAME] [--selector LABELS]

A program of its own, since it replaces itself by the operator, and since `serve` has no such options: the definitions
are applied first, and the selector becomes a part of each entry of a watches file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dljob_operator.ansible_operator_bridge import supervise
from dljob_operator.engine.kube import KubeApi, find_kubeconfig
from dljob_operator.engine.lifecycle.crds import install_crds
from dljob_operator.watches import load_watches

ROOT = Path(__file__).resolve().parents[3]
"""Here, not from devtools: the program runs without the developers' path."""
WATCHES = ROOT / ".build" / "ansible-operator-watches.yaml"
RUNS = 4
"""Ansible runs at a time, as in the image."""


def with_selector(entry: Mapping[str, Any], role: Path, selector: str) -> dict[str, Any]:
    """The entry of a watches file with the path of its role, for jobs without the label that `selector` excludes."""
    made = {**entry, "role": str(role)}
    if selector:
        if not selector.startswith("!"):
            raise ValueError(f"--selector {selector}: only the form '!label' is supported")
        made["selector"] = {"matchExpressions": [{"key": selector[1:], "operator": "DoesNotExist"}]}
    return made


def command(binary: str, watches_file: Path, more: Sequence[str]) -> list[str]:
    """The command line of `serve`, with what the image's entrypoint gives ansible-operator."""
    return [
        *(sys.executable, "-m", "dljob_operator", "serve", f"--watches-file={watches_file}"),
        *(f"--max-concurrent-reconciles={RUNS}", *more, "--", binary, "run", f"--watches-file={watches_file}"),
        *("--health-probe-bind-address=0", "--metrics-bind-address=0", f"--max-concurrent-reconciles={4 * RUNS}"),
        *("--ansible-log-events=Nothing", "--ansible-verbosity=0"),
    ]


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--shim", default="", help="the folder with the compiled shim, as in the image")
    parser.add_argument("--install-crds", action="store_true")
    parser.add_argument("--config-namespace", default="")
    parser.add_argument("--selector", default="")
    options = parser.parse_args(argv)
    source = ROOT / "watches.yaml"
    entries = yaml.safe_load(source.read_text(encoding="utf-8"))
    made = [
        with_selector(entry, watch.role, options.selector)
        for entry, watch in zip(entries, load_watches(source), strict=True)
        if watch.role is not None
    ]
    if options.install_crds:
        install_crds(KubeApi.connect(find_kubeconfig(None, os.environ)), ROOT / "crds", "", [])
    WATCHES.parent.mkdir(exist_ok=True)
    WATCHES.write_text(yaml.safe_dump(made), encoding="utf-8")
    words = command(options.binary, WATCHES, [f"--config-namespace={options.config_namespace}"])
    os.environ[supervise.COMPILED] = options.shim
    os.execv(words[0], words)


if __name__ == "__main__":
    main(sys.argv[1:])
