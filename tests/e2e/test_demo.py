"""`make demo`, as a user types it, on the cluster that is up already: it trains examples/mxnet-digits.yaml."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from kubernetes import client, config

pytestmark = pytest.mark.exclusive

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.training
def test_demo_trains_and_leaves_nothing(cluster: Path, images: None) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(["make", "demo"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    accuracy = re.search(r"demo done in \d+ s: test accuracy ([0-9.]+)", done.stdout)
    assert accuracy, done.stdout
    assert float(accuracy.group(1)) >= 0.95
    assert re.search(r"job: Done, state Succeeded, replicas 5/5", done.stdout)
    assert re.search(r"worker \d+ \| .*epoch", done.stdout), "the training is shown live"
    assert re.search(r"mxjobs.kubeflow.org/mxnet-digits +Succeeded +5/5", done.stdout), done.stdout
    assert "Nothing is wrong: mxjobs.kubeflow.org/mxnet-digits is Succeeded" in done.stdout, done.stdout
    jobs = client.CustomObjectsApi(config.new_client_from_config(str(cluster)))
    left = jobs.list_namespaced_custom_object("kubeflow.org", "v1", "default", "mxjobs")["items"]
    assert [j["metadata"]["name"] for j in left] == []
