"""The dashboard and the alerts with a real Prometheus that scrapes a real operator, while jobs run, wait and end."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import pytest
from devtools.lab.bench.plots import Line, Panel, draw
from devtools.testbed.offline.prometheus import Prometheus
from devtools.testbed.operator import free_port
from support import monitoring, pictures
from support.live_jobs import Cluster
from support.polling import until
from support.prometheus import Server, scraping
from support.prometheus import programs as installed_programs
from support.reporting_program import reached_by_pods, reporting_job

NEEDS_GPUS = "resource=~"
DRAWN = ("Jobs by state", "Jobs that wait by cause", "Interruptions by cause", "Reconciles per second")
DISTINCT = ("state", "cause", "job_name", "result")


@pytest.fixture
def programs() -> Prometheus:
    return installed_programs()


def ending(name: str, command: str, **resources: Any) -> dict[str, Any]:
    manifest = copy.deepcopy(reporting_job(name))
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    container |= {"image": "dljob/shell:1", "command": ["sh", "-c", command], "resources": resources}
    return manifest


def shows(server: Server, expression: str) -> bool:
    return any(one["value"][1] != "NaN" for one in server.query(expression))


def lines(server: Server, expression: str, seconds: float) -> tuple[Line, ...]:
    """The series over the time, with what distinguishes them."""
    found = []
    for series in server.range(expression, seconds):
        times, values = zip(*series["values"], strict=True)
        label = " ".join(series["metric"].get(name, "") for name in DISTINCT if name in series["metric"])
        found.append(Line([time - times[-1] + seconds for time in times], [float(one) for one in values], label))
    return tuple(found)


def draw_panels(server: Server, seconds: float, path: Path) -> None:
    """Draw what the panels of the dashboard show, by their queries."""
    queries = monitoring.of_panels()
    draw([Panel(title, lines(server, queries[f"{title} A"], seconds)) for title in DRAWN], "seconds", path, marker="")


def test_each_panel_shows_real_jobs(own: Cluster, programs: Prometheus, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    start = reached_by_pods(own, tmp_path)
    folder = tmp_path / "prometheus"
    folder.mkdir()
    with (
        start("operator", f"--metrics-bind-address={address}"),
        scraping(programs, folder, address) as server,
    ):
        began = time.monotonic()
        reports = own.create(reporting_job())
        waits = own.create(ending("waits", "exit 0", requests={"cpu": "4000"}))
        for number in range(2):  # a rate needs a sample before and after
            own.create(ending(f"succeeds-{number}", "sleep 1")).wait_end()
            own.create(ending(f"fails-{number}", "sleep 1; exit 3")).wait_end()
            server.wait_samples()
        waits.wait(lambda status: bool(status.get("reason")), "what it waits for")
        again = ending("restarts", "exit 137")
        again["spec"]["runPolicy"] = {"backoffLimit": 1}
        again["spec"]["pytorchReplicaSpecs"]["Master"]["restartPolicy"] = "ExitCode"
        restarts = own.create(again)
        restarts.wait_end()
        restarts.delete()
        for name, expression in monitoring.of_panels().items():
            if NEEDS_GPUS in expression:
                server.query(expression)
            else:
                until(lambda one=expression: shows(server, one), name, timeout=60, pause=0.5)
        for expression in monitoring.of_alerts().values():
            server.query(expression)
        if pictures.ASKED:
            draw_panels(server, time.monotonic() - began, pictures.folder(tmp_path) / "dashboard.svg")
        (found,) = server.query("dljob_jobs_waiting")
        assert (found["metric"]["cause"], found["value"][1]) == ("Node", "1")
        reports.release("master")
        assert reports.wait_end()["state"] == "Succeeded"
