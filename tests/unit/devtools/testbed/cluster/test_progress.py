"""The progress output, and the recorded durations."""

import io
import json
from pathlib import Path

import pytest
from devtools.testbed.cluster.progress import Reporter


def test_a_finished_step_is_shown_and_remembered(tmp_path: Path) -> None:
    out = io.StringIO()
    with Reporter(tmp_path / "durations.json", out).step("etcd", "etcd, compiled"):
        pass
    assert "etcd, compiled: 0 s" in out.getvalue()
    assert len(json.loads((tmp_path / "durations.json").read_text())["etcd"]) == 1


def test_a_skipped_or_failed_step_is_not_remembered(tmp_path: Path) -> None:
    out = io.StringIO()
    report = Reporter(tmp_path / "durations.json", out)
    with report.step("etcd", "etcd, compiled") as step:
        step.skip()
    assert out.getvalue() == ""
    with pytest.raises(ZeroDivisionError), report.step("etcd", "etcd, compiled"):
        raise ZeroDivisionError
    assert "failed after" in out.getvalue()
    assert not (tmp_path / "durations.json").exists()


def test_a_long_plan_is_announced_with_its_length(tmp_path: Path) -> None:
    out = io.StringIO()
    Reporter(tmp_path / "durations.json", out).expect(["kubernetes", "create"])
    assert "2 steps, about 10 min in total" in out.getvalue()


def test_a_running_step_shows_its_progress_and_the_remaining_time(tmp_path: Path) -> None:
    class Fast(Reporter):
        LOG_INTERVAL = 0.01

    class Signalling(io.StringIO):
        def write(self, text: str) -> int:
            written = super().write(text)
            if "packages" in text:
                seen.set()
            return written

    import threading

    seen = threading.Event()
    out = Signalling()
    report = Fast(tmp_path / "durations.json", out)
    report.expect(["kubernetes", "create"])
    with report.step("kubernetes", "Kubernetes") as step:
        step.update(3, 2000, "packages")
        assert seen.wait(10)
    assert "3 of 2000 packages; about 10 min remain" in out.getvalue()


def test_an_unreadable_history_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "durations.json").write_text("{")
    assert Reporter(tmp_path / "durations.json", io.StringIO()).history == {}
