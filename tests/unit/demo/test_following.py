"""The demonstration shows a job's pods while it lasts, and does not mind that the cluster ends after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from devtools.demo import training
from kubernetes import client


class Lost:
    """A job of whose pods nothing more is heard."""

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
def test_what_is_lost_is_said_while_the_job_lasts_and_not_after_it(
    follow: Callable[[Any, training.Show], None], error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    show = training.Show()
    follow(Lost(error), show)
    said = capsys.readouterr().out
    assert "cannot be followed: " in said
    assert ("prematurely" if isinstance(error, urllib3.exceptions.HTTPError) else "Forbidden") in said

    show.over.set()
    follow(Lost(error), show)
    assert capsys.readouterr().out == ""
