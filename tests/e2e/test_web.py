"""`dljob ui` on a real cluster: a job from its page, and a user who sees one namespace."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import yaml
from support.live_jobs import Cluster, config_of_user, until, v1_job


@contextmanager
def served(kubeconfig: Path, *words: str) -> Iterator[tuple[httpx2.Client, list[str]]]:
    """A browser that has opened the address, and the lines that were printed."""
    command = [sys.executable, "-u", "-m", "dljob", "ui", "--no-browser", *words]
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = [process.stdout.readline()]
            while not said[-1].startswith("Open "):
                assert said[-1], "it has ended"
                said.append(process.stdout.readline())
            address = said[-1].split()[1]
            with httpx2.Client(base_url=address.partition("/login")[0], follow_redirects=True, timeout=60) as browser:
                assert browser.get(address).status_code == 200
                yield browser, said
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) is not None


def test_a_job_from_its_page(here: Cluster) -> None:
    talks = "while true; do echo step of $(hostname); sleep 0.5; done"
    here.create(v1_job("digits", worker=(2, talks)))
    page = f"/jobs/{here.namespace}/mxjobs.kubeflow.org/digits"
    with served(here.kubeconfig) as (browser, _):
        until(lambda: page in browser.get("/", params={"q": f"ns:{here.namespace}"}).text)
        until(lambda: "4/4" in browser.get("/", params={"q": f"ns:{here.namespace}"}).text)
        text = browser.get(page).text
        assert "Nothing is wrong: 4/4 replicas are ready." in text
        assert re.search(r"digits-worker-1.*<rect class=\"running\"", text, re.DOTALL), "the replicas over time"
        assert "SuccessfulCreatePod" in text
        assert "step of digits-worker-0" in browser.get(f"{page}/logs").text
        with browser.stream("GET", f"{page}/logs/live") as events:
            data = next(line for line in events.iter_lines() if line.startswith("data"))
            assert json.loads(data.removeprefix("data: "))["text"].startswith("step of digits-worker-")

        (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get(f"{page}/suspend").text)
        assert browser.post(f"{page}/suspend", data={"key": "wrong"}).status_code == 403
        assert "Suspended" in browser.post(f"{page}/suspend", data={"key": key}).text
        assert "Suspended" in browser.get(page).text
        assert browser.post(f"{page}/delete", data={"key": key}).status_code == 200
        until(lambda: page not in browser.get("/").text)
        assert browser.get(page).status_code == 404


def test_a_user_sees_what_its_rights_grant(here: Cluster, tmp_path: Path) -> None:
    here.create(v1_job("digits"))
    where, mine = here.namespace, tmp_path / "kubeconfig"
    config = config_of_user(here, "viewer", ["get", "list", "watch"])
    for one in config["contexts"]:
        one["context"]["namespace"] = where
    mine.write_text(yaml.safe_dump(config))
    page = f"/jobs/{where}/mxjobs.kubeflow.org/digits"
    with served(mine) as (browser, said):
        assert said[0] == f"Only the jobs of the namespace {where} are shown.\n"
        until(lambda: page in browser.get("/").text)
        text = browser.get(page).text
        assert f"You may not list pods in the namespace {where}." in text
        assert "Some causes may stay hidden" in text
        assert browser.get("/jobs/kube-system/mxjobs.kubeflow.org/digits").status_code == 403
        (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get(f"{page}/delete").text)
        assert browser.post(f"{page}/delete", data={"key": key}).status_code == 403
        assert config["users"][0]["user"]["token"] not in text
    here.core.read_namespaced_service_account("viewer", where)
