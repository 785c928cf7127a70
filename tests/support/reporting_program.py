"""A program that reports its progress with Python's own library: 10 until it is released, then 100, and it ends."""

from __future__ import annotations

from typing import Any

from support.live_jobs import RELEASE

PROGRAM = f"""
import json, os, ssl, time, urllib.request
url, token, authority = (os.environ["KUBEFLOW_TRAINER_SERVER_" + name] for name in ("URL", "TOKEN", "CA_CERT"))
context = ssl.create_default_context(cafile=authority)

def report(percent):
    body = json.dumps({{"trainerStatus": {{"progressPercentage": percent}}}}).encode()
    headers = {{"Authorization": "Bearer " + open(token).read()}}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=5, context=context) as answer:
            return answer.status == 200
    except OSError as error:
        print(error, flush=True)

while not os.path.exists({RELEASE!r}):
    report(10)
    time.sleep(1)
while not report(100):
    time.sleep(1)
"""
IMAGE = "dljob/pytorch-digits:1"


def reporting_job(name: str = "reports") -> dict[str, Any]:
    """A PyTorchJob of one process that runs it."""
    container = {"name": "pytorch", "image": IMAGE, "command": ["python3", "-c", PROGRAM]}
    template = {"spec": {"containers": [container]}}
    master = {"replicas": 1, "restartPolicy": "Never", "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }
