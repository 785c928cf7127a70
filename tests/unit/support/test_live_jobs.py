"""The helpers of the end-to-end tests, where the cluster does not answer."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import live_jobs
from support.live_jobs import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Its kubectl writes a line for each call, and then runs what the test has put into ``kubectl.sh``."""
    entry = {"name": "a", "cluster": {"server": "http://127.0.0.1:1"}, "user": {}}
    kinds = {"clusters": [entry], "users": [entry], "contexts": [{"name": "a", "context": {"cluster": "a"}}]}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "a", **kinds}))
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\nexec sh {tmp_path}/kubectl.sh\n')
    program.chmod(0o755)
    return Cluster(kubeconfig, "lab")


def test_a_command_that_gets_no_answer_is_run_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet that did not answer stopped a whole test run."""
    monkeypatch.setattr(live_jobs, "EXEC_TIMEOUT", 2.0)
    (tmp_path / "kubectl.sh").write_text(f"[ $(wc -l < {tmp_path}/calls) = 2 ] || exec sleep 60\n")
    cluster.run("pod", "touch", "/tmp/file", container="main")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 2
    assert calls[0].endswith("-n lab exec pod -c main -- touch /tmp/file")
    with pytest.raises(subprocess.TimeoutExpired):
        cluster.run("pod", "touch", "/tmp/file", container="main")


def test_a_command_that_fails_or_prints_something_fails_the_test(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "kubectl.sh").write_text("echo no such file >&2; exit 1\n")
    with pytest.raises(AssertionError, match="no such file"):
        cluster.run("pod", "touch", "/none/file", container="main")
    (tmp_path / "kubectl.sh").write_text("echo surprise\n")
    with pytest.raises(AssertionError, match="surprise"):
        cluster.run("pod", "touch", "/tmp/file", container="main")


def states_of_the_container(monkeypatch: pytest.MonkeyPatch, states: list[dict[str, Any]], now: Path) -> None:
    """Each watch of the pod begins with the first state; ``now`` is a file with the type of the last one that it gave."""

    def watched(*_: Any, field_selector: str, **__: Any) -> Iterator[dict[str, Any]]:
        assert field_selector == "metadata.name=pod"
        for state in states:
            now.write_text(next(iter(state)))
            other = {"name": "other", "state": {"terminated": {"exitCode": 0}}}
            status = {"containerStatuses": [other, {"name": "main", "state": state}]}
            yield {"type": "MODIFIED", "raw_object": {"status": status}}

    monkeypatch.setattr(live_jobs, "watched", watched)


def test_a_container_is_released_once_it_runs(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chief was released before its container had started, because the workers had failed before that."""
    states_of_the_container(monkeypatch, [{"waiting": {}}, {"running": {}}, {"terminated": {}}], tmp_path / "now")
    (tmp_path / "kubectl.sh").write_text(f"grep -q running {tmp_path}/now || {{ echo container not found; exit 1; }}\n")
    cluster.release("pod", "main")
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


@pytest.mark.parametrize(("states", "ends"), [
    ([{"running": {}}, {"terminated": {"exitCode": 0}}], True),
    ([{"terminated": {"exitCode": 137}}], False),  # it was killed
    ([{"running": {}}], False),
])  # fmt: skip
def test_a_released_container_may_kill_the_command_that_releases_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: list[dict[str, Any]], ends: bool
) -> None:
    """A container ended before its `touch` had returned, and the test failed with the command's exit code."""
    states_of_the_container(monkeypatch, states, tmp_path / "now")
    (tmp_path / "kubectl.sh").write_text("echo command terminated with exit code 137 >&2; exit 1\n")
    if ends:
        cluster.release("pod", "main")
    else:
        with pytest.raises(AssertionError, match="exit code 137"):
            cluster.release("pod", "main")
