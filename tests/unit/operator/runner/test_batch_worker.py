"""Long-lived workers in real processes: they serve several requests, are killed, time out, and are replaced."""

from __future__ import annotations

import os
import signal
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from dljob_operator.runner import RunEnding, RunnerClient, RunRequest, RunResult, Target
from dljob_operator.runner.batch_worker import PipeWorkSource, run_result
from dljob_operator.runner.messages import FrameReader

_STAYS = """
    import os, time
    from ansible.plugins.action import ActionBase
    from ansible_collections.dljob.operator.plugins.module_utils.shared import worker_protocol

    class ActionModule(ActionBase):
        _requires_connection = False

        def run(self, tmp=None, task_vars=None):
            work_source = worker_protocol.current()
            if not task_vars.get(worker_protocol.WORKER_VAR):
                return {"changed": False, "dljob": {"jobs": [], "requeue_after": None}}
            for number, work in enumerate(work_source.work()):
                jobs = []
                for job in work.jobs:
                    if job.get("crash"):
                        os._exit(7)
                    time.sleep(job.get("sleep", 0))
                    if job.get("watches"):
                        uid = job["uid"]
                        before = [work.changes.of(uid), work.changes.of_any()]
                        work_source.report_partial({"changed": True, "dljob": {"jobs": []}})
                        deadline = time.monotonic() + 20
                        while not work.changes.of_any() and time.monotonic() < deadline:
                            time.sleep(0.01)
                        found = [*before, work.changes.of(uid), work.changes.of_any(), work.since_taken.of(uid)]
                        jobs.append({"uid": uid, "ok": True, "message": str(found)})
                        continue
                    message = f"{os.getpid()} {number} {task_vars['greeting']} {sorted(work.owned or {})} {work.is_contended}"
                    jobs.append({"uid": job["uid"], "ok": not job.get("bad"), "message": message})
                    if job.get("partial"):
                        work_source.report_partial({"changed": True, "dljob": {"jobs": jobs}})
                        jobs = []
                failed = all(not job["ok"] for job in jobs)
                work_source.report_final({"changed": True, "failed": failed, "msg": "bad", "dljob": {"jobs": jobs}})
            return {"changed": False}
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerClient]:
    role = tmp_path_factory.mktemp("roles") / "stays"
    (role / "tasks").mkdir(parents=True)
    (role / "action_plugins").mkdir()
    (role / "tasks" / "main.yml").write_text("- name: Stay\n  stays:\n")
    (role / "action_plugins" / "stays.py").write_text(textwrap.dedent(_STAYS))
    target = Target("stays", role, batchable=True, fixed={"greeting": "hello"})
    runner = RunnerClient([target], 2)
    runner.start()
    runner.wait_ready(60)
    yield runner
    runner.close()


def ask(*jobs: dict[str, Any], timeout: float = 60) -> RunRequest:
    named = [{"uid": str(number), **job} for number, job in enumerate(jobs or ({},))]
    return RunRequest("stays", {"dljob_batch": named}, snapshot={"0": {"Pod": []}}, timeout=timeout, long_lived=True)


def message_words(result: RunResult) -> list[str]:
    """process, number of the batch, the entry's own variable, what the jobs own, whether others wait"""
    assert result.ending is RunEnding.COMPLETED, result
    return str(result.reports[0]["jobs"][0]["message"]).split(" ")


def test_one_worker_serves_several_requests(warm: RunnerClient) -> None:
    first, second = message_words(warm.run(ask())), message_words(warm.run(ask({}, {})))
    assert first[0] == second[0], "the same process"
    assert int(second[1]) == int(first[1]) + 1
    assert first[2:] == ["hello", "['0']", "False"]
    assert message_words(warm.run(replace(ask(), is_contended=True)))[4] == "True"


@pytest.mark.parametrize(("changed", "own"), [("0", True), ("other", False)])
def test_a_worker_sees_a_users_change_while_it_runs(warm: RunnerClient, changed: str, own: bool) -> None:
    counts = warm.changes.counts(["0"])
    results = warm.results(replace(ask({"watches": True}), changes=counts, taken=counts))
    assert next(results).is_partial, "the run has begun"
    warm.changes.increment(changed)
    (last,) = results
    assert last.reports[0]["jobs"][0]["message"] == str([False, False, own, True, own])


def test_concurrent_requests_have_two_workers(warm: RunnerClient) -> None:
    slow, quick = warm.submit(ask({"sleep": 0.5})), warm.submit(ask())
    assert message_words(quick.result())[0] != message_words(slow.result())[0]


def test_a_partial_result_arrives_immediately(warm: RunnerClient) -> None:
    results = warm.results(ask({"partial": True}, {"partial": True}, {"sleep": 1}))
    first, second = next(results), next(results)
    assert [(r.is_partial, [job["uid"] for job in r.reports[0]["jobs"]]) for r in (first, second)] == [
        (True, ["0"]),
        (True, ["1"]),
    ]
    assert warm.running == 1, "the run is at its third job"
    (last,) = results
    assert (last.is_partial, [job["uid"] for job in last.reports[0]["jobs"]]) == (False, ["2"])


def test_a_worker_that_dies_after_a_partial_result(warm: RunnerClient) -> None:
    partial, last = warm.results(ask({"partial": True}, {"crash": True}))
    assert partial.ok
    assert (last.ending, last.is_partial) == (RunEnding.CRASHED, False)
    assert warm.run(ask()).ok


def test_run_returns_the_final_result_only(warm: RunnerClient) -> None:
    assert warm.run(ask({"partial": True}, {})).reports[0]["jobs"][0]["uid"] == "1"


def test_a_failed_batch_is_reported_and_the_worker_continues(warm: RunnerClient) -> None:
    failed = warm.run(ask({"bad": True}))
    assert (failed.ok, failed.message) == (False, "Reconcile: bad")
    assert failed.reports[0]["jobs"][0]["ok"] is False
    mixed = warm.run(ask({"bad": True}, {}))
    assert mixed.ok
    assert [job["ok"] for job in mixed.reports[0]["jobs"]] == [False, True]


def test_a_worker_that_dies_fails_only_its_own_request(warm: RunnerClient) -> None:
    before = {message_words(warm.run(ask()))[0]}
    assert warm.run(ask({"crash": True})).ending is RunEnding.CRASHED
    assert message_words(warm.run(ask()))[1] in ("0", "1", "2", "3", "4", "5", "6"), before


def test_a_killed_idle_worker_is_replaced(warm: RunnerClient) -> None:
    for _ in range(2):
        os.kill(int(message_words(warm.run(ask()))[0]), signal.SIGKILL)
        time.sleep(1.0)  # its run notices within half a second, and a request in between would die with it
    assert warm.run(ask()).ok


def test_a_request_that_times_out_ends_the_worker(warm: RunnerClient) -> None:
    began = time.monotonic()
    assert warm.run(ask({"sleep": 60}, timeout=0.5)).ending is RunEnding.TIMED_OUT
    assert time.monotonic() - began < 30
    assert warm.run(ask()).ok


def test_a_job_of_many_slices_may_take_longer_than_a_run(warm: RunnerClient) -> None:
    """A worker takes one slice after the other, and each has the whole time."""
    assert warm.run(ask()).ok, "the start of the worker takes no time of the first slice"
    began = time.monotonic()
    timeout = 5.0
    results = [warm.run(ask({"sleep": 1.3}, timeout=timeout)) for _ in range(4)]
    assert time.monotonic() - began > timeout
    processes = {message_words(result)[0] for result in results}
    assert len(processes) == 1, "and none is killed"


def test_idle_workers_do_not_count_as_runs(warm: RunnerClient) -> None:
    warm.run(ask())
    assert warm.running == 0


def test_frames_larger_than_a_pipe_pass(warm: RunnerClient) -> None:
    assert warm.run(ask({"padding": "x" * 1_000_000})).ok


def test_the_work_source_reads_adjacent_frames_and_writes_results() -> None:
    (work_read, work_write), (result_read, result_write) = os.pipe(), os.pipe()
    from dljob_operator.runner.messages import Frame

    os.write(work_write, Frame({}, ask().to_body()).encode() + Frame({}, ask({"uid": "b"}).to_body()).encode())
    os.close(work_write)
    desk = PipeWorkSource(work_read, result_write)
    seen = []
    for batch in desk.work():
        seen.append([job["uid"] for job in batch.jobs])
        desk.report_final({"changed": True, "dljob": {"jobs": []}})
    assert seen == [["0"], ["b"]]
    assert len(list(FrameReader().feed(os.read(result_read, 65536)))) == 2
    for fd in (work_read, result_read, result_write):
        os.close(fd)


def test_the_first_batch_of_a_role_that_was_loaded_later_brings_its_declaration() -> None:
    from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import Declaration

    from dljob_operator.runner.messages import Frame

    (work_read, work_write), declaration = os.pipe(), Declaration({"says": "hello"}, {"a": "b"})
    header = {"declaration": asdict(declaration)}
    os.write(work_write, Frame(header, ask().to_body()).encode() + Frame({}, ask().to_body()).encode())
    os.close(work_write)
    known = {"other": Declaration({}, {})}
    assert [batch.declaration for batch in PipeWorkSource(work_read, -1, known).work()] == [declaration] * 2
    assert list(known) == ["other"]
    os.close(work_read)


@pytest.mark.parametrize(
    ("result", "stats", "ok"),
    [
        ({"changed": True, "dljob": {}}, {"ok": 1, "changed": 1}, True),
        ({"changed": False, "dljob": {}}, {"ok": 1, "changed": 0}, True),
        ({"changed": True, "failed": True, "msg": "no", "dljob": {}}, {"ok": 0, "failures": 1}, False),
    ],
)
def test_a_tasks_result_is_that_of_a_run(result: dict[str, Any], stats: dict[str, int], ok: bool) -> None:
    run = run_result(result)
    assert (run.stats, run.ok) == (stats, ok)
