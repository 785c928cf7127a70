"""Versions of frameworks whose images only the longest tests build: they train, and the matrix of failures runs in small."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from devtools.build.images import build_and_push
from devtools.lab.matrix.cells import FRAMEWORKS, GROW, REPLACE, REPLACEMENTS
from devtools.testbed.base.settings import settings_from
from support.live_jobs import Cluster

ROOT = Path(__file__).resolve().parents[2]
GOOD = r"final: test_accuracy=0\.9[5-9]\d* processes="

pytestmark = [pytest.mark.full, pytest.mark.training]


@pytest.fixture(scope="module")
def full_images(cluster: Path) -> None:
    build_and_push(settings_from(), full=True)


@pytest.mark.parametrize(
    ("example", "usual", "image", "type_", "fields"),
    [
        ("pytorch-digits", "dljob/pytorch-digits:1", "dljob/pytorch-digits:2", "master", {}),
        ("jax-digits", "dljob/jax-digits:1", "dljob/jax-digits:0.4", "worker", {}),
        ("mpi-digits", "dljob/mpi-digits:1", "dljob/mpi-digits:5", "launcher", {}),
        ("mpi-digits", "dljob/mpi-digits:1", "dljob/mpi-digits:mpich", "launcher", {"mpiImplementation": "MPICH"}),
    ],
)
def test_the_example_trains(
    here: Cluster, full_images: None, example: str, usual: str, image: str, type_: str, fields: dict[str, str]
) -> None:
    text = (ROOT / "examples" / f"{example}.yaml").read_text(encoding="utf-8")
    assert usual in text
    manifest = yaml.safe_load(text.replace(usual, image))
    manifest["spec"] |= fields
    job = here.create(manifest)
    status = job.wait_end()
    assert status["state"] == "Succeeded", status.get("reason")
    pod = job.pod(type_)
    log = here.log(pod["metadata"]["name"], pod["spec"]["containers"][0]["name"])
    assert re.search(GOOD, log), log


def measured(folder: Path, frameworks: str, cells: str, seconds: float = 600) -> list[dict[str, str]]:
    """The rows of the matrix whose key contains ``cells``."""
    table = folder / "matrix.csv"
    chosen = ["--only", frameworks, "--cells", cells, "--output", str(folder), "--table", str(table)]
    paths = {**os.environ, "PYTHONPATH": ":".join(str(ROOT / one) for one in ("hack", "src"))}
    subprocess.run([sys.executable, "-m", "devtools.lab.matrix", *chosen], check=True, timeout=seconds, env=paths)
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_matrix_in_small(cluster: Path, full_images: None, tmp_path: Path) -> None:
    jax = next(one for one in FRAMEWORKS if one.key == "jax")
    rows = measured(tmp_path, jax.key, f"{jax.worker}/SIGKILL/Never")
    (row,) = [row for row in rows if (row["event"], row["policy"]) == ("worker-1 SIGKILL", "Never")]
    assert row["the process hit"] == "137 after 0 s"
    assert "fails the job" in row["operator and kubelet"]
    assert row["result"].startswith("Failed after")


def test_workers_come_and_go(cluster: Path, full_images: None, tmp_path: Path) -> None:
    """By either rendezvous."""
    rows = [row for row in measured(tmp_path, "elastic2,etcd2", GROW, 1200) if row["event"] == GROW]
    assert len(rows) == 2
    for row in rows:
        assert re.match(r"3 train after \d+ s; 2 train after \d+ s", row["operator and kubelet"]), row
        assert row["result"].startswith("Succeeded after"), row


def test_each_replacement_of_a_worker_trains(cluster: Path, full_images: None, tmp_path: Path) -> None:
    (row,) = [row for row in measured(tmp_path, "elastic2", REPLACE, 1800) if row["event"].endswith(REPLACE)]
    assert row["operator and kubelet"].startswith(f"{REPLACEMENTS} of {REPLACEMENTS} replacements train"), row
    assert row["result"].startswith("Succeeded after"), row
