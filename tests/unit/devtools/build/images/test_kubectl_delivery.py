"""The init container of an MPIJob v1's launcher: it ends once the launcher can reach all its hosts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.polling import until

SCRIPT = Path(__file__).resolve().parents[5] / "build" / "images" / "kubectl-delivery" / "deliver"
KUBECTL = """#!/bin/sh
# "--namespace" NAMESPACE "wait" CONDITION POD TIMEOUT, or ... "auth" "can-i" "create" POD "--subresource=exec"
cd "$(dirname "$0")"
[ "$2" = team ] || exit 9
case "$3" in
wait) pod="${5#pod/}" file="ready-$pod" ;;
auth) pod="${6#pods/}" file="allowed-$pod" ;;
esac
echo "$3 $pod" >>asked
[ -e "$file" ]
"""
QUICK_SLEEP = "#!/bin/sh\nexec /bin/sleep 0.05\n"


class Delivery:
    """The script in a folder with its kubectl, which finds a pod ready, or permits it, where the test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "target").mkdir()
        for name, text in (("kubectl", KUBECTL), ("sleep", QUICK_SLEEP), ("hostname", "#!/bin/sh\necho pi-launcher\n")):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        text = SCRIPT.read_text().replace("/usr/bin/kubectl", str(folder / "kubectl"))
        (folder / "deliver").write_text(text.replace("/etc/mpi", str(folder)))
        self.hosts("pi-launcher", "pi-worker-0", "pi-worker-1")
        self.process = subprocess.Popen(
            ["sh", str(folder / "deliver")],
            env={"PATH": f"{folder}:{os.environ['PATH']}", "TARGET_DIR": str(folder / "target"), "NAMESPACE": "team"},
            stdin=subprocess.DEVNULL,
        )

    def hosts(self, *names: str) -> None:
        (self.folder / "new").write_text("".join(f"{name} slots=1\n" for name in names))
        (self.folder / "new").rename(self.folder / "hostfile")

    def set(self, *files: str) -> None:
        for file in files:
            (self.folder / file).touch()

    def asked(self, question: str) -> int:
        asked = self.folder / "asked"
        return asked.read_text().splitlines().count(question) if asked.exists() else 0

    def asked_again(self, question: str) -> None:
        """Wait until the script has asked this two more times: the first may have been before the last change."""
        before = self.asked(question)
        until(lambda: self.asked(question) >= before + 2)


@pytest.fixture
def delivery(tmp_path: Path) -> Iterator[Delivery]:
    made = Delivery(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


def test_it_waits_for_each_worker_and_for_the_right_to_reach_it(delivery: Delivery) -> None:
    delivery.asked_again("wait pi-worker-0")
    delivery.set("ready-pi-worker-0", "allowed-pi-worker-0")
    delivery.asked_again("wait pi-worker-1")
    delivery.set("ready-pi-worker-1")
    delivery.asked_again("auth pi-worker-1")
    assert delivery.process.poll() is None
    delivery.set("allowed-pi-worker-1")
    assert delivery.process.wait(30) == 0
    assert (delivery.folder / "target" / "kubectl").read_text() == KUBECTL
    assert "pi-launcher" not in (delivery.folder / "asked").read_text(), "it does not wait for itself"


def test_it_does_not_wait_for_a_worker_that_was_removed(delivery: Delivery) -> None:
    delivery.set("ready-pi-worker-0", "allowed-pi-worker-0")
    delivery.asked_again("wait pi-worker-1")
    delivery.hosts("pi-launcher", "pi-worker-0")
    assert delivery.process.wait(30) == 0
