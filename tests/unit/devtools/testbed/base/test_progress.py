"""The progress output, and the recorded durations."""

import io
import json
import threading
from pathlib import Path

import pytest
from devtools.testbed.base import progress
from devtools.testbed.base.progress import Reporter, Step


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


# ---- what remains


def test_history_beats_the_built_in_figure() -> None:
    assert progress.expected("kubernetes", {}) == progress.DEFAULTS["kubernetes"]
    assert progress.expected("kubernetes", {"kubernetes": [10, 20, 3000]}) == 20


def test_unknown_steps_get_some_figure() -> None:
    assert progress.expected("never heard of", {}) == progress.UNKNOWN


@pytest.mark.parametrize(
    ("elapsed", "done", "of", "left"),
    [
        (0, 0, 0, 100),
        (60, 0, 0, 40),
        (500, 0, 0, 0),  # an overdue step is expected to end now
        (9, 90, 100, 1),  # a fast run: the history does not apply to it
        (100, 50, 100, 100),  # a slow one: half is done at the expected end
        (1, 5, 100, 99),  # the first packages do not sway it
        (9, 7, 5, 0),  # more than there are
    ],
)
def test_a_step_has_its_expected_time_left_or_goes_on_at_its_pace(
    elapsed: float, done: int, of: int, left: float
) -> None:
    step = Step("a", "A")
    step.update(done, of, "packages")
    assert step.remaining(elapsed, {"a": [100]}) == pytest.approx(left)


def test_later_steps_remain_too(tmp_path: Path) -> None:
    report = Reporter(tmp_path / "durations.json", io.StringIO())
    report.history = {"a": [100], "b": [50]}
    report.expect(["a", "b"])
    assert report.line(Step("a", "A"), 60) == "A: 1 min 00 s; about 2 min remain"
    assert report.line(Step("b", "B"), 40) == "B: 40 s; about 10 s remain"
    assert report.line(Step("unplanned", "C"), 0) == "C: 0 s; about 10 s remain"


def test_the_last_few_runs_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "durations.json"
    file.write_text('{"a": [1, 2, 3, 4, 5], "b": [9]}')
    with Reporter(file, io.StringIO()).step("a", "A"):
        pass
    kept = json.loads(file.read_text())
    assert (kept["a"][:-1], len(kept["a"]), kept["b"]) == ([2, 3, 4, 5], 5, [9])


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (545, "9 min 05 s")])
def test_clock(seconds: float, text: str) -> None:
    assert progress.clock(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(2, "less than 5 s"), (42, "about 40 s"), (545, "about 9 min")])
def test_about_is_no_finer_than_it_knows(seconds: float, text: str) -> None:
    assert progress.about(seconds) == text
