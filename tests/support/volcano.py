"""Volcano at work on the test cluster."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import volcano
from kubernetes import client, config

from support.live_jobs import until

GROUP, VERSION = "scheduling.volcano.sh", "v1beta1"
_READY_SECONDS = 90.0
_END_SECONDS = 10.0
_NOT_FOUND = 404


@contextmanager
def installed(settings: Settings, kubeconfig: Path, folder: Path) -> Iterator[None]:
    """Volcano's scheduler and controllers, with their logs in ``folder``.

    On exit they, their CRDs and all their objects are gone. There is one at a time in a cluster: another one waits.
    """
    programs, chart = volcano.programs(settings), volcano.chart(settings)
    definitions = volcano.definitions(chart)
    with (settings.state_dir / "volcano.lock").open("w") as lock, config.new_client_from_config(str(kubeconfig)) as api:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # its types know neither manifests nor that the fields of an answer are there
        crds: Any = client.ApiextensionsV1Api(api)
        _remove(crds, definitions)
        try:
            for one in definitions:
                crds.create_custom_resource_definition(one)
            for one in definitions:
                until(lambda name=one["metadata"]["name"]: _is_served(crds, name))
            with ExitStack() as stack:
                running = {
                    name: stack.enter_context(_process(command, folder / f"{name}.log"))
                    for name, command in volcano.commands(programs, chart, kubeconfig).items()
                }
                until(lambda: _is_ready(api, running, folder), timeout=_READY_SECONDS)
                yield
        finally:
            _remove(crds, definitions)


@contextmanager
def _process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _is_ready(api: client.ApiClient, running: Mapping[str, subprocess.Popen[bytes]], folder: Path) -> bool:
    """Whether the scheduler has made its queue, and the controllers have opened it."""
    for name, process in running.items():
        assert process.poll() is None, (folder / f"{name}.log").read_text(errors="replace")[-2000:]
    try:
        found: Any = client.CustomObjectsApi(api).get_cluster_custom_object(GROUP, VERSION, "queues", volcano.QUEUE)
    except client.ApiException as error:
        assert error.status == _NOT_FOUND, error
        return False
    return bool(found.get("status", {}).get("state") == "Open")


def _is_served(crds: Any, name: str) -> bool:
    found = crds.read_custom_resource_definition(name).status
    return any(one.type == "Established" and one.status == "True" for one in found.conditions or ())


def _remove(crds: Any, definitions: Sequence[Mapping[str, Any]]) -> None:
    names = [one["metadata"]["name"] for one in definitions]
    for name in names:
        try:
            crds.delete_custom_resource_definition(name)
        except client.ApiException as error:
            assert error.status == _NOT_FOUND, error
    until(lambda: not any(_exists(crds, name) for name in names))


def _exists(crds: Any, name: str) -> bool:
    try:
        crds.read_custom_resource_definition(name)
    except client.ApiException as error:
        assert error.status == _NOT_FOUND, error
        return False
    return True
