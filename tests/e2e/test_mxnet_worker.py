"""A worker of MXNet that is lost: its new pod joins the others, since the operator has set heartbeats."""

from __future__ import annotations

from typing import Any

from support.live_jobs import Cluster

STEPS = 120
PROGRAM = f"""
import os, signal, sys, time
import mxnet as mx
step, lost = "/meet/$NAMESPACE-step", "/meet/$NAMESPACE-lost"
first = int(open(step).read()) if os.path.exists(lost) else 0
kv, out = mx.kv.create("dist_sync"), mx.nd.zeros(1)
kv.init("sum", mx.nd.ones(1))
if first and kv.rank == 0:
    first += 1  # a server takes the second kv.init of a key for a push
print("joined at", first, flush=True)
for number in range(first, {STEPS}):
    kv.push("sum", mx.nd.ones(1))
    kv.pull("sum", out=out)
    out.wait_to_read()
    if os.environ["DMLC_WORKER_ID"] == "0":
        with open(step + ".new", "w") as file:
            file.write(str(number + 1))
        os.replace(step + ".new", step)
    elif number == 20 and not os.path.exists(lost):
        open(lost, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
print("all steps", flush=True)
"""


def replica(script: str, count: int = 1) -> dict[str, Any]:
    container = {
        "name": "mxnet",
        "image": "dljob/mxnet-digits:1",
        "command": ["sh", "-c", 'python -c "$PROGRAM"; exit $?'],  # process 1 cannot kill itself
        "env": [{"name": "PROGRAM", "value": script}, {"name": "OMP_NUM_THREADS", "value": "1"}],
        "volumeMounts": [{"name": "meet", "mountPath": "/meet"}],
    }
    volumes = [{"name": "meet", "hostPath": {"path": "/tmp"}}]
    template = {"spec": {"containers": [container], "volumes": volumes}}
    return {"replicas": count, "restartPolicy": "ExitCode", "template": template}


def test_the_new_pod_of_a_killed_worker_joins_the_training(here: Cluster) -> None:
    program = PROGRAM.replace("$NAMESPACE", here.namespace)
    replicas = {"Scheduler": replica("import mxnet"), "Server": replica("import mxnet"), "Worker": replica(program, 2)}
    job = here.create(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            "metadata": {"name": "loses-worker"},
            "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": replicas},
        }
    )
    status = job.wait_end()
    assert status["state"] == "Succeeded"
    assert status["retries"] == {"worker-1": 1}
    log = here.log("loses-worker-worker-1")
    assert "joined at 2" in log and "all steps" in log, log
