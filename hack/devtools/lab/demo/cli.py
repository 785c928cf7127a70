"""The steps of the demo, in order; it stops everything that it started, also after a failure."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import yaml

from devtools.build.images.errors import ImagesError
from devtools.lab import command
from devtools.lab.demo import training
from devtools.lab.demo.deploy import DeployedOperator
from devtools.paths import ROOT
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.base.termination import ends_main_thread
from devtools.testbed.client import Client, Refused
from devtools.testbed.cluster import lifecycle
from devtools.testbed.operator import OperatorError, OperatorProcess

EXAMPLE = ROOT / "examples" / "mxnet-digits.yaml"
WANTED_ACCURACY = 0.95
TRAINING_LIMIT = 300.0
"""Timeout of the training in seconds; it takes about 20."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = command.parser("demo", __doc__)
    parser.add_argument("--keep", action="store_true", help="keep the cluster and the operator's CRDs")
    engines = "run the operator as a local process, or its image in a pod"
    parser.add_argument("--engine", choices=("process", "image"), default="process", help=engines)
    given = parser.parse_args(argv)
    keep = given.keep
    started = time.monotonic()
    try:
        # a terminated demo cleans up like an interrupted one
        with ends_main_thread(), cluster(settings_from(), keep) as settings:
            accuracy = demonstrate(settings, keep, given.engine)
    except (ClusterError, ImagesError, OperatorError, training.TrainingError, Refused, OSError) as e:
        print(f"\ndemo failed: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted, and cleaned up", file=sys.stderr)
        return 130
    seconds = time.monotonic() - started
    print(f"\ndemo done in {seconds:.0f} s: test accuracy {accuracy:.4f} (expected at least {WANTED_ACCURACY})")
    return 0


@contextlib.contextmanager
def cluster(settings: Settings, keep: bool) -> Iterator[Settings]:
    """The local cluster; a cluster that was up before stays up."""
    headline("a real Kubernetes cluster (kind)")
    was_up = lifecycle.exists(settings)
    try:
        lifecycle.up(settings)
        yield settings
    finally:
        if was_up:
            print("\nthe cluster was up before and stays up: `make cluster-down` stops it")
        elif keep:
            print(how_to_use(settings))
        else:
            headline("cleaning up")
            lifecycle.down(settings)


def demonstrate(settings: Settings, keep: bool, engine: str = "process") -> float:
    """Build the images, install and run the operator, and train; returns the test accuracy from the training's log."""
    from devtools.build.images import build_and_push  # needs the engine that the cluster step has started

    headline("the example image (MXNet 1.9.1, the UCI digits)")
    build_and_push(settings, ["mxnet"])

    manifest = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    operator: OperatorProcess | DeployedOperator
    if engine == "image":
        headline("the operator: its image, deployed with kustomize")
        build_and_push(settings, ["operator"])
        operator = DeployedOperator(settings, keep=keep)
    else:
        headline("the operator: CRDs, then the embedded engine")
        operator = OperatorProcess(settings.kubeconfig, log=settings.state_dir / "operator.log")
    with operator:
        operator.wait_ready()
        print(f"    {operator.ready_line}")
        headline(f"a distributed job: {EXAMPLE.relative_to(ROOT)}")
        look = functools.partial(see, settings)
        result = training.run(Client(settings.kubeconfig), manifest, TRAINING_LIMIT, keep, look)
    headline("the result")
    print(result.text())
    if result.status["state"] != "Succeeded":
        raise training.TrainingError("the job did not succeed")
    if result.accuracy is None or result.accuracy < WANTED_ACCURACY:
        raise training.TrainingError(f"test accuracy {result.accuracy}, expected at least {WANTED_ACCURACY}")
    return result.accuracy


def see(settings: Settings, job: str) -> None:
    """Show the job as its user sees it."""
    headline("the job as its user sees it")
    for words in (("list", "mxjobs.kubeflow.org"), ("why", f"mxjobs.kubeflow.org/{job}"), ("top", "-A")):
        print(f"    $ kubectl dljob {' '.join(words)}")
        command = [sys.executable, "-m", "dljob", *words, "--kubeconfig", str(settings.kubeconfig)]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        print("".join(f"    {line}\n" for line in (shown.stdout + shown.stderr).splitlines()))


def headline(text: str) -> None:
    print(f"\n==> {text}", flush=True)


def how_to_use(settings: Settings) -> str:
    return f"""
==> the cluster stays up
    . {settings.state_dir / "env"}              # KUBECONFIG, docker, kubectl
    make run                             # the operator, in the foreground
    kubectl apply -f examples/mxnet-digits.yaml
    kubectl get dljobs -w
    export PATH={ROOT / ".venv/bin"}:$PATH  # kubectl dljob
    kubectl dljob logs -f mxnet-digits
    kubectl dljob ui                     # prints the address of a page with the jobs
    make cluster-down                    # when done"""
