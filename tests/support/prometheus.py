"""A real Prometheus on this host, which scrapes a target each second."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import cache_dir_from
from devtools.testbed.offline.prometheus import Prometheus, prometheus
from devtools.testbed.operator import free_port

from support.polling import until

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""No proxy for this host."""


def programs() -> Prometheus:
    """Prometheus and promtool; skips the test where they cannot be had."""
    try:
        return prometheus(cache_dir_from(os.environ))
    except ClusterError as error:
        pytest.skip(f"Prometheus cannot be had here: {error}")


class Server:
    """Prometheus on this host."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, expression: str) -> list[Any]:
        """The series of an expression now. Raises URLError, or HTTPError for one that Prometheus refuses."""
        arguments = urllib.parse.urlencode({"query": expression})
        with DIRECT.open(f"http://{self._address}/api/v1/query?{arguments}", timeout=30) as response:
            answer = json.load(response)
        assert answer["status"] == "success" and not answer.get("warnings"), answer
        return list(answer["data"]["result"])

    def range(self, expression: str, seconds: float) -> list[Any]:
        """The series of an expression in the last ``seconds``, a value each second."""
        now = time.time()
        asked = {"query": expression, "start": now - seconds, "end": now, "step": "1"}
        path = f"/api/v1/query_range?{urllib.parse.urlencode(asked)}"
        with DIRECT.open(f"http://{self._address}{path}", timeout=30) as response:
            return list(json.load(response)["data"]["result"])

    def samples(self) -> int:
        """How many samples Prometheus has of a metric of the operator."""
        try:
            found = self.query("count_over_time(dljob_queue_jobs[1h])")
        except OSError:
            return 0
        return int(found[0]["value"][1]) if found else 0

    def wait_samples(self, more: int = 2) -> None:
        """Wait for so many further samples."""
        seen = self.samples()
        until(lambda: self.samples() >= seen + more, pause=0.2)


@contextmanager
def scraping(programs: Prometheus, folder: Path, target: str) -> Iterator[Server]:
    """Prometheus with samples of the operator whose metrics ``target``, an address, serves."""
    address = f"127.0.0.1:{free_port()}"
    config = folder / "prometheus.yml"
    scrape = {"job_name": "dljob-operator", "honor_labels": True, "static_configs": [{"targets": [target]}]}
    text = yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]})
    config.write_text(text, encoding="utf-8")
    command = [
        str(programs.server), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        found = Server(address)
        found.wait_samples()
        yield found
    finally:
        process.terminate()
        process.wait(30)
