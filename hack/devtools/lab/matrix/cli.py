"""`python -m devtools.lab.matrix`: the cells that matter most first, several at a time, for a number of minutes.

The results go to .build/matrix/results.json. `--draw` writes benchmarks/matrix.csv from them again, `--keep` adds to
them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from devtools.build.images import build_and_push, definition
from devtools.lab import command
from devtools.lab.matrix import report
from devtools.lab.matrix.cells import ETCD, FRAMEWORKS, Cell, ordered
from devtools.lab.matrix.run import Board, Run
from devtools.paths import ROOT
from devtools.testbed.base.settings import settings_from
from devtools.testbed.client import Client
from devtools.testbed.cluster import lifecycle
from devtools.testbed.ground import PODS
from devtools.testbed.machine import commit
from devtools.testbed.operator import OperatorProcess
from devtools.testbed.watching import Watching

FOLDER = ROOT / ".build" / "matrix"
TABLE = ROOT / "benchmarks" / "matrix.csv"
TRAINING = Path(__file__).with_name("training.py")
WAITING = 4
"""Cells beside the others that only wait."""


def main(argv: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else list(argv)
    options = _parser().parse_args(given)
    options.given = " ".join(given)
    data = options.output / "results.json"
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.draw:
        kept = json.loads(data.read_text())["results"] if options.keep and data.exists() else {}
        if not command.done("matrix", lambda: _measure(options, kept, data)):
            return 1
        print(f"matrix: {len(kept)} cells")
    found = json.loads(data.read_text())
    options.table.write_text(report.table(found["results"], found["facts"]))
    return 0


def _chosen(options: argparse.Namespace, kept: dict[str, Any]) -> list[Cell]:
    wanted = options.only.split(",") if options.only else [framework.key for framework in FRAMEWORKS]
    if unknown := sorted(set(wanted) - {framework.key for framework in FRAMEWORKS}):
        raise ValueError(f"there is no framework {', '.join(unknown)}")
    found = ordered([framework for framework in FRAMEWORKS if framework.key in wanted])
    return [cell for cell in found if options.cells in cell.key and cell.key not in kept][: options.most]


def _measure(options: argparse.Namespace, results: dict[str, Any], data: Path) -> None:
    """Run the cells, and add their ``results``."""
    settings = settings_from()
    began, say = time.monotonic(), command.speaker()
    todo = _chosen(options, results)
    server = etcd_server() if any(cell.framework.is_elastic_only for cell in todo) else []
    used = {cell.framework.image for cell in todo} | {image for one in server for image in _images(one)}
    wanted = [one.name for one in definition.load_all(full=True) if used & set(one.names)]
    build_and_push(settings, wanted)
    _, kind = lifecycle.existing(settings)
    client = Client(settings.kubeconfig)
    namespace = f"matrix-{uuid.uuid4().hex[:6]}"
    facts = {
        "command": f"`make matrix{' MATRIX=' + json.dumps(options.given) if options.given else ''}`",
        "cluster": f"kind, Kubernetes {client.request('GET', '/version')['gitVersion']}, {os.cpu_count()} processors",
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
    }
    operator_commit = commit()
    lock = threading.Lock()
    board = Board()
    arguments = ["--namespace", namespace, *([] if options.no_crds else ["--install-crds"])]
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})

    def one(number: int, cell: Cell) -> None:
        if time.monotonic() - began > 60 * options.minutes:
            return
        row = Run(client, kind, namespace, board, cell, f"m{number}").result() | {"commit": operator_commit}
        with lock:
            if row["result"].startswith("not run"):
                print(f"matrix: {cell.key}: {row['result']} {row.get('last')}", file=sys.stderr)
            results[cell.key] = row
            say(f"{row['seconds']:4.0f} s {cell.key}: {row['result']}")
            data.write_text(json.dumps({"facts": facts, "results": results}, indent=1))

    try:
        client.request(
            "POST", f"/api/v1/namespaces/{namespace}/configmaps",
            {"metadata": {"name": "matrix"}, "data": {"training.py": TRAINING.read_text()}},
        )  # fmt: skip
        for part in server:
            group = f"apis/{part['apiVersion']}" if "/" in part["apiVersion"] else f"api/{part['apiVersion']}"
            client.request("POST", f"/{group}/namespaces/{namespace}/{part['kind'].lower()}s", part)
        with (
            OperatorProcess(settings.kubeconfig, options.output / "operator.log", arguments) as operator,
            Watching(client, PODS.format(namespace), board.take),
            ThreadPoolExecutor(options.at_once) as pool,
            ThreadPoolExecutor(WAITING) as waiting,
        ):
            operator.wait_ready(120)
            tasks = [(waiting if cell.waits else pool).submit(one, n, cell) for n, cell in enumerate(todo)]
            for task in tasks:
                task.result()
    finally:
        client.raw("DELETE", f"/api/v1/namespaces/{namespace}")


def etcd_server() -> list[dict[str, Any]]:
    """The etcd server of its example, for rendezvous."""
    documents = yaml.safe_load_all((ROOT / "examples" / "pytorch-etcd.yaml").read_text(encoding="utf-8"))
    found = [one for one in documents if one["kind"] in ("Deployment", "Service")]
    if not any(one["metadata"]["name"] == ETCD for one in found):
        raise ValueError(f"examples/pytorch-etcd.yaml has no Service {ETCD}")
    return found


def _images(manifest: dict[str, Any]) -> list[str]:
    template = manifest["spec"].get("template") or {"spec": {"containers": []}}
    return [container["image"] for container in template["spec"]["containers"]]


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("matrix", __doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=25, help="no cell begins later")
    add("--at-once", type=int, default=4, metavar="N", help="jobs at a time")
    add("--only", default="", metavar="KEYS", help=f"of {', '.join(framework.key for framework in FRAMEWORKS)}")
    add("--cells", default="", metavar="TEXT", help="only cells whose key contains it")
    add("--most", type=int, help="number of cells")
    add("--keep", action="store_true", help="keep the results of the last run, and run only the other cells")
    add("--no-crds", action="store_true", help="the cluster has the CRDs")
    add("--output", type=Path, default=FOLDER, metavar="DIR", help="folder of the data")
    add("--table", type=Path, default=TABLE, help="the table")
    add("--draw", action="store_true", help="only write the table again, from the last run's data")
    return parser
