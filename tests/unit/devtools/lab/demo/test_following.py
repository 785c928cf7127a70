"""The demo shows a job's pods while it runs, and ignores API errors when the cluster stops afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from devtools.lab.demo import training
from kubernetes import client


class Lost:
    """A job whose pods and logs can no longer be read."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def pods(self, uid: str, timeout: float) -> Any:
        raise self._error

    def log(self, pod: str, container: str, follow: bool = False) -> Any:
        raise self._error


FOLLOWERS: list[Callable[[Any, training.Show], None]] = [
    lambda job, show: training.follow_pods(job, "u-1", show, 60),
    lambda job, show: training.follow_log(job, "digits-worker-0", "mxnet", show),
]


@pytest.mark.parametrize("follow", FOLLOWERS)
@pytest.mark.parametrize(
    "error", [urllib3.exceptions.ProtocolError("Response ended prematurely"), client.ApiException(403, "Forbidden")]
)
def test_a_lost_connection_is_reported_only_while_the_job_runs(
    follow: Callable[[Any, training.Show], None], error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    show = training.Show()
    follow(Lost(error), show)
    output = capsys.readouterr().out
    assert "cannot be followed: " in output
    assert ("prematurely" if isinstance(error, urllib3.exceptions.HTTPError) else "Forbidden") in output

    show.over.set()
    follow(Lost(error), show)
    assert capsys.readouterr().out == ""
