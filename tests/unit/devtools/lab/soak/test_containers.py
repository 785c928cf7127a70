from __future__ import annotations

from typing import Any

import pytest
from devtools.lab.soak.containers import end_pod, ended_status
from devtools.testbed.client import Refused

POD = {
    "metadata": {"name": "x-worker-0", "namespace": "soak", "uid": "u1"},
    "spec": {"containers": [{"name": "mxnet"}, {"name": "sidecar"}]},
}


@pytest.mark.parametrize(("exit_code", "phase", "reason"), [(0, "Succeeded", "Completed"), (137, "Failed", "Error")])
def test_all_containers_end_with_the_code(exit_code: int, phase: str, reason: str) -> None:
    status = ended_status(POD, exit_code)["status"]
    assert status["phase"] == phase
    terminated = [one["state"]["terminated"] for one in status["containerStatuses"]]
    assert terminated == [{"exitCode": exit_code, "reason": reason}] * 2
    assert [one["name"] for one in status["containerStatuses"]] == ["mxnet", "sidecar"]


class Answers:
    def __init__(self, status: int) -> None:
        self.status = status
        self.bodies: list[Any] = []

    def request(self, method: str, path: str, body: Any, content_type: str) -> None:
        self.bodies.append(body)
        if self.status >= 400:
            raise Refused(self.status, "no")


@pytest.mark.parametrize("status", [200, 404, 409])
def test_a_pod_that_is_gone_or_replaced_is_left_alone(status: int) -> None:
    client = Answers(status)
    end_pod(client, POD, 0)  # type: ignore[arg-type]
    assert client.bodies[0]["metadata"]["uid"] == "u1"


def test_another_error_is_raised() -> None:
    with pytest.raises(Refused):
        end_pod(Answers(403), POD, 0)  # type: ignore[arg-type]
