"""`kubectl dljob`, on a real cluster, with real jobs and a user who may do little."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from devtools.lab.bench import workloads
from dljob.api import Request
from dljob.client import Client
from support.live_jobs import Cluster, config_of_user, for_own_operator, shell_template, v1_job

SCRIPTS = Path(sys.executable).parent


def dljob(
    here: Cluster, *words: str, kubeconfig: Path | None = None, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run it as kubectl's plugin, in the namespace ``here``."""
    path = os.pathsep.join((str(here.kubeconfig.parent / "bin"), str(SCRIPTS), os.environ["PATH"]))
    environ = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig or here.kubeconfig)}
    first, *others = words
    command = ["kubectl", "dljob", first, "--namespace", here.namespace, *others]
    return subprocess.run(command, env=environ, input=text, capture_output=True, text=True, check=False, timeout=300)


def shown(here: Cluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dljob(here, "get", name, "-o", "json").stdout)
    return found


def test_a_job_from_its_submission_to_its_deletion(here: Cluster) -> None:
    manifest = v1_job("digits")
    before = dljob(here, "submit", "-f", "-", "--dry-run", "server", text=yaml.safe_dump(manifest))
    assert (before.returncode, before.stdout) == (0, "mxjobs.kubeflow.org/digits created (dry run)\n")
    assert (
        dljob(here, "submit", "-f", "-", text=yaml.safe_dump(manifest)).stdout == "mxjobs.kubeflow.org/digits created\n"
    )
    assert dljob(here, "wait", "digits", "--for", "Running", "--timeout", "4m").returncode == 0
    running = shown(here, "digits")
    assert (running["state"], [one["running"] for one in running["replicas"]]) == ("Running", [1, 1, 1])
    assert running["requests"]["cpu"] == 0.03
    assert re.search("digits-worker-0 +Running", dljob(here, "describe", "mxjob/digits").stdout)
    assert "SuccessfulCreatePod" in dljob(here, "events", "digits").stdout

    assert dljob(here, "suspend", "digits").returncode == 0
    assert shown(here, "digits")["state"] == "Suspended"
    assert dljob(here, "resume", "digits").returncode == 0
    assert dljob(here, "wait", "digits", "--for", "Running", "--timeout", "4m").returncode == 0
    uids = {pod["metadata"]["uid"] for pod in here.owned_pods(running["uid"])}
    assert dljob(here, "restart", "digits").stdout == "mxjobs.kubeflow.org/digits restarted\n"
    assert dljob(here, "wait", "digits", "--for", "Running", "--timeout", "4m").returncode == 0
    assert not uids & {pod["metadata"]["uid"] for pod in here.owned_pods(running["uid"])}

    changed = yaml.safe_dump({**manifest, "metadata": {"name": "digits", "labels": {"team": "vision"}}})
    assert "+    team: vision" in dljob(here, "submit", "-f", "-", "--diff", text=changed).stdout
    assert dljob(here, "list", "-l", "team=vision", "-o", "name").stdout == "mxjobs.kubeflow.org/digits\n"
    assert dljob(here, "delete", "digits").returncode == 0
    assert dljob(here, "wait", "digits").returncode == 3


def test_submit_follows_a_job_and_exits_with_its_outcome(here: Cluster) -> None:
    good = v1_job("good", scheduler="exit 0", worker="exit 0")
    done = dljob(here, "submit", "-f", "-", "--watch", text=yaml.safe_dump(good))
    assert (done.returncode, done.stderr.splitlines()[-1].split()[1]) == (0, "Succeeded")
    bad = v1_job("bad", scheduler="echo no such data >&2; exit 3")
    done = dljob(here, "submit", "-f", "-", "--watch", text=yaml.safe_dump(bad))
    assert done.returncode == 7
    assert "bad-scheduler-0: Error: no such data" in done.stderr
    assert shown(here, "bad")["failure"]["exitCode"] == 3
    assert dljob(here, "suspend", "bad").returncode == 1
    invalid = v1_job("invalid")
    invalid["spec"]["mxReplicaSpecs"]["Worker"]["replica"] = 2
    done = dljob(here, "submit", "-f", "-", text=yaml.safe_dump(invalid))
    assert done.returncode == 1 and "Worker.replica: field not declared" in done.stderr


def test_a_launcher_of_a_batch_job(here: Cluster) -> None:
    replicas = {
        "Launcher": {"template": shell_template("sleep 86400", None, "mpi")},
        "Worker": {"template": shell_template("sleep 86400", None, "mpi")},
    }
    job = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "hosts"}}
    here.create({**job, "spec": {"mpiReplicaSpecs": replicas}})
    assert dljob(here, "wait", "hosts", "--for", "Running", "--timeout", "4m").returncode == 0
    seen = {one["type"]: one["running"] for one in shown(here, "hosts")["replicas"]}
    assert seen == {"Launcher": 1, "Worker": 1}


def test_a_user_who_may_only_read_jobs_of_a_kind(here: Cluster, tmp_path: Path) -> None:
    here.create(v1_job("digits"))
    where, mine = here.namespace, tmp_path / "kubeconfig"
    config = config_of_user(here, "reader", ["get", "list"])
    mine.write_text(yaml.safe_dump(config))

    listed = dljob(here, "list", "mxjobs.kubeflow.org", "-o", "name", kubeconfig=mine)
    assert (listed.stdout, listed.returncode) == ("mxjobs.kubeflow.org/digits\n", 0)
    every = dljob(here, "list", kubeconfig=mine)
    assert "mxjobs.kubeflow.org/digits" in every.stdout
    assert f"warning: You may not list tfjobs.kubeflow.org in the namespace {where}." in every.stderr
    described = dljob(here, "describe", "mxjobs.kubeflow.org/digits", kubeconfig=mine)
    assert described.returncode == 0
    assert described.stderr.count("warning: You may not list") == 2, "pods and events"
    denied = dljob(here, "suspend", "mxjobs.kubeflow.org/digits", kubeconfig=mine)
    assert denied.returncode == 4 and denied.stderr.count("\n") == 1
    config["users"] = [{"name": one["name"], "user": {"token": "expired"}} for one in config["users"]]
    mine.write_text(yaml.safe_dump(config))
    refused = dljob(here, "list", kubeconfig=mine)
    assert (refused.returncode, refused.stderr.count("\n")) == (4, 1) and "Log in again" in refused.stderr


def test_kubectl_completes_the_plugin(here: Cluster) -> None:
    here.create(v1_job("digits"))
    path = os.pathsep.join((str(here.kubeconfig.parent / "bin"), str(SCRIPTS), os.environ["PATH"]))
    environ = {**os.environ, "PATH": path, "KUBECONFIG": str(here.kubeconfig)}
    command = ["kubectl", "__complete", "dljob", "get", "-n", here.namespace, ""]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "digits"


def test_logs_of_all_replicas_until_the_job_ends(here: Cluster) -> None:
    talks = "for i in 1 2 3; do echo step $i of $(hostname); sleep 0.2; done"
    fails_once = f"{talks}; [ -e /shared/failed ] && exit 0; touch /shared/failed; exit 1"
    job = v1_job("talks", "OnFailure", scheduler="sleep 6", server="sleep 6", worker=(2, talks))
    template = job["spec"]["mxReplicaSpecs"]["Server"]["template"]["spec"]
    (container,) = template["containers"]
    container["command"] = ["sh", "-c", fails_once]
    container["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    template["volumes"] = [{"name": "shared", "emptyDir": {}}]
    here.create({**job, "spec": {**job["spec"], "runPolicy": {"cleanPodPolicy": "None"}}})
    followed = dljob(here, "logs", "talks", "-f")
    assert (followed.returncode, followed.stderr) == (0, "")
    expected = sorted(f"worker-{index} | step {step} of talks-worker-{index}" for index in (0, 1) for step in (1, 2, 3))
    lines = [re.sub(" +", " ", line) for line in followed.stdout.splitlines()]
    assert sorted(line for line in lines if line.startswith("worker")) == expected
    servers = [line for line in lines if line.startswith("server")]
    assert servers == [f"server-0 | step {step} of talks-server-0" for step in (1, 2, 3)] * 2, "both of its containers"
    before = dljob(here, "logs", "talks", "server", "-p", "-o", "raw")
    is_removed = before.returncode == 3 and "its node has removed it" in before.stderr
    assert before.stdout.count("step") == 3 or is_removed, before

    timed = dljob(here, "logs", "talks", "worker", "--timestamps", "-o", "raw").stdout.splitlines()
    assert [line.split()[0] for line in timed] == sorted(line.split()[0] for line in timed)
    one = dljob(here, "logs", "talks", "worker-1", "--grep", "step [23]", "--tail", "2", "-o", "json").stdout
    assert [json.loads(line)["message"][:6] for line in one.splitlines()] == ["step 2", "step 3"]
    assert dljob(here, "logs", "talks", "ps").returncode == 3


def test_the_same_lines_as_kubectl_of_a_job_with_long_logs(here: Cluster) -> None:
    script = (
        "i=0; while [ $i -lt 4000 ]; do echo $i $(hostname) 0123456789012345678901234567890123456789; i=$((i+1)); done"
    )
    here.create(v1_job("long", scheduler=script, server="sleep 86400", worker=(4, f"{script}; sleep 86400")))
    assert dljob(here, "wait", "long", "--for", "Running", "--timeout", "4m").returncode == 0
    pods = [f"long-worker-{index}" for index in range(4)]
    for pod in pods:
        here.wait_log(pod, "3999 ")
    merged = dljob(here, "logs", "long", "worker", "-o", "json").stdout.splitlines()
    seen: dict[str, list[str]] = {}
    for line in map(json.loads, merged):
        seen.setdefault(line["pod"], []).append(line["message"])
    assert seen == {pod: here.core.read_namespaced_pod_log(pod, here.namespace).splitlines() for pod in pods}
    times = [json.loads(line)["time"] for line in merged]
    assert times == sorted(times)


def test_who_holds_what(here: Cluster) -> None:
    here.create(v1_job("digits"))
    assert dljob(here, "wait", "digits", "--for", "Running", "--timeout", "4m").returncode == 0
    top = dljob(here, "top")
    assert re.search(r"mxjobs.kubeflow.org/digits +Running +0 +-/0.03 ", top.stdout)
    assert "it has no metrics-server" in top.stderr
    (group,) = json.loads(dljob(here, "top", "--by", "namespace,node", "-o", "json").stdout)["groups"]
    assert (group["namespace"], group["jobs"], group["cpu"]) == (here.namespace, 1, 0.03)
    assert re.search(r"^GPUs: \d+, of which jobs hold 0, other pods", dljob(here, "top", "-A").stdout, re.MULTILINE)


def test_the_api_server_takes_every_new_manifest(here: Cluster) -> None:
    from dljob.new import FRAMEWORKS

    for framework in FRAMEWORKS:
        more = ("--redis", "redis") if framework == "caffe2" else ()
        words = f"new {framework} --image train:1 --workers 3 --gpus 2 --memory 1Gi --env A=b".split()
        made = dljob(here, *words, *more, "--", "python", "train.py")
        done = dljob(here, "submit", "-f", "-", "--dry-run", "server", text=made.stdout)
        assert done.returncode == 0, f"{framework}: {done.stderr}"


def test_a_list_of_1000_jobs_and_the_start_take_about_as_long_as_kubectls(own: Cluster) -> None:
    kinds = ("MXJob", *workloads.OTHER_KINDS)
    api = Client(str(own.kubeconfig)).api
    posts = [
        Request(workloads.collection(kind, own.namespace), {}, "POST", for_own_operator(job))
        for kind in kinds
        for job in workloads.jobs_of(kind, "job", 1000 // len(kinds) + 1, 1)[0]
    ][:1000]
    assert {response.status for response in api.send_all(posts)} == {201}
    bin_ = own.kubeconfig.parent / "bin"
    where = ("--kubeconfig", str(own.kubeconfig), "-n", own.namespace)
    ours, theirs = str(SCRIPTS / "dljob"), str(bin_ / "kubectl")
    every = ",".join(f"{kind.lower()}s.kubeflow.org" for kind in kinds)
    listed = ratio([ours, "list", *where], [theirs, "get", every, *where], "job-0", 1000)
    started = ratio([ours, "--help"], [theirs, "--help"], "Usage:", 1)
    assert listed <= 1.5 and started <= 2, (listed, started)


def ratio(ours: list[str], theirs: list[str], word: str, times: int) -> float:
    """Of the durations of two commands, which print ``word`` so many times: of the quickest of some runs in turn.

    What else the machine does only makes runs longer.
    """
    quickest = [math.inf, math.inf]
    for _ in range(7):
        for number, command in enumerate((ours, theirs)):
            begin = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            quickest[number] = min(quickest[number], time.perf_counter() - begin)
            assert done.stdout.lower().count(word.lower()) == times, done
    return quickest[0] / quickest[1]
