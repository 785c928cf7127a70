"""More than one operator on a cluster: one leads and one stands by, or each has its own share."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from devtools.testbed import usage
from devtools.testbed.operator import OperatorProcess, free_port, total
from support.live_jobs import Cluster, until, v1alpha1_job

DEADLINE_FILE = re.compile(r"/\S+/write-deadline$", re.MULTILINE)
LEADS, STANDS_BY = "leadership gained", "standing by"
RENEW_DEADLINE = 12.0
PATIENT = ("--leader-elect-lease-duration=15s", f"--leader-elect-renew-deadline={RENEW_DEADLINE:g}s")
"""On a machine that is busy with other tests, the API server may take longer for one request than the default permits."""
SECONDS = 60.0
"""For a takeover: 15 for the Lease to run out, the rest for that machine."""


def _wait_for(log: Path, text: str, timeout: float = 90.0) -> None:
    deadline = time.monotonic() + timeout
    while not log.exists() or text not in log.read_text():
        assert time.monotonic() < deadline, f"{text!r} did not come:\n{log.read_text()}"
        time.sleep(0.05)


@pytest.mark.long
def test_a_standby_takes_over_when_the_leader_is_killed(
    cluster: Path, own: Cluster, namespace: str, tmp_path: Path
) -> None:
    arguments = ("--namespace", namespace, "--leader-elect", "--leader-election-namespace", namespace, *PATIENT)
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    with OperatorProcess(cluster, logs[0], arguments) as first:
        first.wait_ready()
        with OperatorProcess(cluster, logs[1], arguments) as second:
            _wait_for(logs[1], STANDS_BY)
            own.create(v1alpha1_job("before")).wait_running()
            assert "ready:" not in logs[1].read_text(), "two at work"
            first.kill()
            killed = time.monotonic()
            job = own.create(v1alpha1_job("after"))
            _wait_for(logs[1], LEADS)
            assert time.monotonic() - killed < SECONDS
            second.wait_ready()
            job.wait_running()
        # The second was ended politely: it has given the Lease back.
        with OperatorProcess(cluster, tmp_path / "third.log", arguments) as third:
            third.wait_ready()
            assert STANDS_BY not in (tmp_path / "third.log").read_text()


def test_the_workers_of_a_stopped_leader_may_not_write_after_its_deadline(
    cluster: Path, own: Cluster, namespace: str, tmp_path: Path
) -> None:
    arguments = ("--namespace", namespace, "--leader-elect", "--leader-election-namespace", namespace, *PATIENT)
    log = tmp_path / "operator.log"
    with OperatorProcess(cluster, log, arguments) as leader:
        leader.wait_ready()
        own.create(v1alpha1_job("first")).wait_running()
        others = usage.tree(leader.pid).keys() - {leader.pid}
        deadlines = [deadline for pid in others if (deadline := _deadline_of(pid)) is not None]
        assert deadlines, "a worker has written"
        assert all(deadline.seconds_left > 0 for deadline in deadlines)
        os.kill(leader.pid, signal.SIGSTOP)
        # a renewal may have been under way, which counts from its beginning
        over = time.monotonic() + RENEW_DEADLINE + 1
        until(lambda: all(deadline.seconds_left <= 0 for deadline in deadlines) and time.monotonic() > over, SECONDS)
        os.kill(leader.pid, signal.SIGCONT)
        _wait_for(log, "another operator is the leader now")


def _deadline_of(pid: int) -> WriteDeadline | None:
    """The deadline that the process obeys before each write, None where it has not written yet."""
    try:
        mapped = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return None  # it has ended
    found = DEADLINE_FILE.search(mapped)
    return WriteDeadline(Path(found[0])) if found else None


@pytest.mark.long
def test_two_shards_never_touch_each_others_jobs(cluster: Path, own: Cluster, namespace: str, tmp_path: Path) -> None:
    shards = ("a", "b")
    logs = {shard: tmp_path / f"{shard}.log" for shard in shards}
    metrics = {shard: f"127.0.0.1:{free_port()}" for shard in shards}
    common = ("--namespace", namespace, "--log-level", "debug")
    processes = {
        shard: OperatorProcess(
            cluster,
            logs[shard],
            (*common, "--selector", f"shard={shard}", "--metrics-bind-address", metrics[shard]),
        )
        for shard in shards
    }
    with processes["a"] as one, processes["b"] as other:
        one.wait_ready()
        other.wait_ready()
        jobs = {}
        for number in range(4):
            shard = shards[number % 2]
            manifest = v1alpha1_job(f"of-{shard}-{number}", scheduler="exit 0")
            manifest["metadata"]["labels"] = {"shard": shard}
            jobs[own.create(manifest)] = shard
        nobodys = own.create(v1alpha1_job("nobodys"))
        for job in jobs:
            assert job.wait_end()["state"] == "Succeeded"
        assert not nobodys.status
        assert nobodys.pods() == []
        for job, shard in jobs.items():
            other_shard = shards[1 - shards.index(shard)]
            assert f"name={job.name} " in logs[shard].read_text()
            assert job.name not in logs[other_shard].read_text()
        for shard in shards:
            with urllib.request.urlopen(f"http://{metrics[shard]}/metrics", timeout=10) as answer:
                known = total(answer.read().decode(), rf'dljob_jobs\{{.*namespace="{namespace}"')
            assert known == 2, "an operator knows of its own jobs alone"
