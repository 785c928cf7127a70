"""The controller with a real runner against a real API server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from integration.engine.support import ECHO, Engine, Jobs, until

# Runs begin in the order of what caused them, so that what is run afterwards was caused afterwards.
_ONE_AT_A_TIME = {"max_concurrent": 1}
_PERIOD = "ansible.sdk.operatorframework.io/reconcile-period"


def test_a_new_job_is_run_with_ansible_operators_variables(engine: Engine, jobs: Jobs) -> None:
    engine.start(vars={"state": "present"})
    jobs.create("a", say="{{ 1+1 }}{% raw %}")
    run = engine.wait_run("a", 1)
    assert run == {
        "name": "a",
        "generation": 1,
        "pods": {},
        "services": 0,
        "jobs": 1,
        "single": {"name": "a", "namespace": jobs.namespace},
        "state": "present",
        "say": "{{ 1+1 }}{% raw %}",
    }


def test_jobs_that_are_there_at_the_start_are_run_once_and_again_after_a_restart(engine: Engine, jobs: Jobs) -> None:
    jobs.create("a")
    engine.start()
    engine.wait_run("a", 1)
    engine.stop()
    engine.start()
    engine.wait_run("a", 2)
    jobs.create("later")
    engine.wait_run("later", 1)
    assert len(engine.runs("a")) == 2


def test_at_a_start_a_new_job_comes_before_those_that_are_looked_after(engine: Engine, jobs: Jobs) -> None:
    old = [f"a-{number:02d}" for number in range(20)]
    for name in old:
        jobs.create(name)
        jobs.write_status(name, phase="Running")
    jobs.create("new")  # the last in the order of a list
    engine.start(_ONE_AT_A_TIME)
    for name in old:
        engine.wait_run(name, 1)
    order = [run["name"] for run in engine.runs()]
    assert order.index("new") < 3, order


def test_what_a_user_changes_is_run_and_what_a_status_says_is_not(engine: Engine, jobs: Jobs) -> None:
    engine.start(_ONE_AT_A_TIME)
    jobs.create("a")
    engine.wait_run("a", 1)
    jobs.patch("a", spec={"say": "new"})
    run = engine.wait_run("a", 2)
    assert (run["generation"], run["say"]) == (2, "new")
    jobs.patch("a", metadata={"annotations": {"x": "y"}})
    engine.wait_run("a", 3)
    jobs.write_status("a", phase="Running")
    # What happens to another job afterwards is seen afterwards.
    jobs.create("marker")
    engine.wait_run("marker", 1)
    assert len(engine.runs("a")) == 3


def test_an_owned_pod_is_a_reason_to_run_and_in_the_snapshot(engine: Engine, jobs: Jobs) -> None:
    engine.start(_ONE_AT_A_TIME)
    owner = jobs.create("a")
    engine.wait_run("a", 1)
    jobs.create_pod("a-0", owner)
    assert until(lambda: [run for run in engine.runs("a") if "a-0" in run["pods"]], "the pod is in a snapshot")
    jobs.pod_phase("a-0", "Running")
    until(lambda: engine.runs("a")[-1]["pods"] == {"a-0": "Running"}, "its phase is in a snapshot")
    count = len(engine.runs("a"))
    jobs.annotate_pod("a-0", "somebody", "else")
    # A pod's event waits for others, so that only one of its like is dealt with later than it.
    marker = jobs.create("pod-marker")
    engine.wait_run("pod-marker", 1)
    jobs.create_pod("marker-0", marker)
    until(lambda: any(run["pods"] for run in engine.runs("pod-marker")), "a later pod's event is dealt with")
    assert len(engine.runs("a")) == count
    jobs.delete_pod("a-0")
    until(lambda: engine.runs("a")[-1]["pods"] == {}, "its deletion is in a snapshot")
    count = len(engine.runs("a"))
    jobs.create_pod("orphan", None)
    jobs.create_pod("unlabelled", owner, ours=False)
    jobs.create_pod("marker-1", marker)
    until(lambda: "marker-1" in engine.runs("pod-marker")[-1]["pods"], "a later pod's event is dealt with")
    assert len(engine.runs("a")) == count


def test_a_role_may_ask_to_run_again(engine: Engine, jobs: Jobs) -> None:
    engine.start()
    jobs.create("a", requeue=0.2)
    engine.wait_run("a", 4)


def test_a_period_can_be_the_jobs_own(engine: Engine, jobs: Jobs) -> None:
    engine.start()
    jobs.create("a")
    engine.wait_run("a", 1)
    jobs.patch("a", metadata={"annotations": {_PERIOD: "1s"}})
    engine.wait_run("a", 3)


def test_a_failed_run_is_reported_retried_with_backoff_and_succeeds_once_fixed(
    engine: Engine, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    engine.start()
    jobs.create("a", fail="there is no such queue")
    engine.wait_run("a", 3)
    (event,) = until(lambda: [e for e in jobs.events("a") if e["count"] >= 2], "the event counts up")
    assert (event["reason"], event["type"]) == ("ReconcileFailed", "Warning")
    assert "there is no such queue" in event["message"]
    assert event["involvedObject"]["uid"] == jobs.get("a")["metadata"]["uid"]
    job = f"kind=EchoJob api_version={ECHO.api_version} namespace={jobs.namespace} name=a"
    assert f"reconcile failed {job} ok=false" in caplog.text
    assert " retry_seconds=1.0" in caplog.text
    assert " retry_seconds=2.0" in caplog.text
    before = len(engine.runs("a"))
    jobs.patch("a", spec={"fail": None})
    until(lambda: engine.runs("a")[-1]["generation"] == 2, "the mended job is run at once")
    assert len(engine.runs("a")) <= before + 2


def test_a_deleted_job_is_not_run(engine: Engine, jobs: Jobs) -> None:
    engine.start()
    uid = jobs.create("a", requeue=0.5)["metadata"]["uid"]
    engine.wait_run("a", 1)
    jobs.patch("a", metadata={"finalizers": ["example.com/somebody-elses"]})
    until(lambda: len(engine.runs("a")) >= 2, "the finalizer is a change")
    jobs.delete("a")
    count = len(engine.runs("a"))
    jobs.create("marker", requeue=0.5)
    engine.wait_run("marker", 3)
    assert len(engine.runs("a")) <= count + 1  # one may have been in pending
    jobs.patch("a", metadata={"finalizers": None})
    until(lambda: not jobs.exists("a"), "it is gone")
    until(lambda: uid not in engine.controller.queue._items, "nothing of it is kept")  # noqa: SLF001 - memory that no answer shows


@pytest.mark.parametrize("own_role", [True, False])
def test_a_finalizer_is_put_on_run_and_taken_off(engine: Engine, jobs: Jobs, own_role: bool) -> None:
    from dljob_operator.watches import Finalizer

    role = engine.roles / "roles" / "goodbye" if own_role else None
    engine.start(finalizer=Finalizer("engine-test.example.com/end", role=role, vars={"state": "absent"}))
    jobs.create("a")
    engine.wait_run("a", 1)
    assert jobs.get("a")["metadata"]["finalizers"] == ["engine-test.example.com/end"]
    jobs.delete("a")
    until(lambda: not jobs.exists("a"), "the finalizer is taken off")
    assert engine.runs("a")[-1]["state"] == "absent"
    assert all(run["state"] is None for run in engine.runs("a")[:-1])


def test_a_finalizer_whose_run_fails_stays_on(engine: Engine, jobs: Jobs) -> None:
    from dljob_operator.watches import Finalizer

    engine.start(finalizer=Finalizer("engine-test.example.com/end", vars={"state": "absent"}))
    jobs.create("a", fail="not yet")
    engine.wait_run("a", 1)
    jobs.delete("a")
    until(lambda: engine.runs("a")[-1]["state"] == "absent", "the finalizer was run")
    assert jobs.exists("a")
    jobs.patch("a", spec={"fail": None})
    until(lambda: not jobs.exists("a"), "it goes once the run goes well")


class TestBatches:
    def test_waiting_jobs_share_a_batch_and_have_separate_results(self, engine: Engine, jobs: Jobs) -> None:
        for number in range(12):
            jobs.create(f"good-{number}")
        jobs.create("bad", fail="bad on purpose")
        engine.start(vars={"dljob_batchable": True})
        for number in range(12):
            engine.wait_run(f"good-{number}", 1)
        engine.wait_run("bad", 2)
        assert max(run["jobs"] for run in engine.runs()) > 3
        assert all(run["single"] is None for run in engine.runs() if run["jobs"] > 1)
        until(lambda: jobs.events("bad"), "the bad one has an Event")
        assert all(len(engine.runs(f"good-{number}")) == 1 for number in range(12))
        assert not jobs.events("good-0")

    def test_a_job_that_takes_the_others_down_is_then_run_alone(self, engine: Engine, jobs: Jobs) -> None:
        names = ["a", "b", "c", "d"]
        for name in names:
            jobs.create(name, crash=name == "b")
        engine.start({"max_concurrent": 1}, vars={"dljob_batchable": True})
        for name in ("a", "c", "d"):
            until(lambda name=name: any(run["jobs"] == 1 for run in engine.runs(name)), f"{name} runs alone")
        until(lambda: jobs.events("b"), "the cause has an Event")
        count = {name: len(engine.runs(name)) for name in ("a", "c", "d")}
        engine.wait_run("b", len(engine.runs("b")) + 1)
        assert {name: len(engine.runs(name)) for name in count} == count

    def test_a_slow_job_does_not_delay_the_others(self, engine: Engine, jobs: Jobs, tmp_path: Path) -> None:
        """A long-lived worker reports its jobs one by one, and each returns to the queue immediately."""
        first, long = tmp_path / "first", tmp_path / "long"
        jobs.create("first", wait_for=str(first))
        variables = {"dljob_batchable": True, "dljob_resident": True}
        engine.start({"max_concurrent": 1}, shared_runner=False, manage_status=True, vars=variables)
        engine.wait_run("first", 1)
        jobs.create("long", wait_for=str(long))
        quick = ["quick-0", "quick-1"]
        for name in quick:
            jobs.create(name)
        until(lambda: engine.controller.queue.depth == 3, "they wait together")
        first.touch()
        for name in quick:
            until(lambda name=name: _successful(jobs, name), f"{name} is through")
        assert [run["jobs"] for name in ("long", *quick) for run in engine.runs(name)] == [3, 3, 3]
        assert not _successful(jobs, "long")
        long.touch()
        until(lambda: _successful(jobs, "long"), "so is the long one")


def _successful(jobs: Jobs, name: str) -> bool:
    conditions = jobs.get(name).get("status", {}).get("conditions", [])
    return any(one["type"] == "Successful" and one["status"] == "True" for one in conditions)


def test_a_killed_warm_process_costs_one_try(engine: Engine, jobs: Jobs, tmp_path: Path) -> None:
    engine.start(shared_runner=False)
    jobs.create("a", wait_for=str(tmp_path / "go"))
    engine.wait_run("a", 1)
    fork_server = engine.own_runner.pid
    assert fork_server is not None
    os.kill(fork_server, signal.SIGKILL)
    (tmp_path / "go").touch()
    engine.wait_run("a", 2)
    until(lambda: [e for e in jobs.events("a") if "signal 9" in e["message"]], "the Event is there")


def test_conditions_are_kept_where_the_entry_asks_for_them(engine: Engine, jobs: Jobs) -> None:
    engine.start(manage_status=True)
    jobs.create("a")

    def conditions() -> dict[str, str]:
        found = jobs.get("a").get("status", {}).get("conditions", [])
        return {condition["type"]: condition["status"] for condition in found}

    until(lambda: conditions() == {"Running": "True", "Failure": "False", "Successful": "True"}, "a good run")
    jobs.write_status("a", mine="kept")
    jobs.patch("a", spec={"fail": "no"})
    until(lambda: conditions() == {"Running": "False", "Failure": "True", "Successful": "False"}, "a failed run")
    assert jobs.get("a")["status"]["mine"] == "kept"


def test_a_selector_leaves_the_others_alone(engine: Engine, jobs: Jobs) -> None:
    engine.start(selector="engine=mine")
    jobs.create("other")
    jobs.create("a")
    jobs.patch("a", metadata={"labels": {"engine": "mine"}})
    engine.wait_run("a", 1)
    assert not engine.runs("other")


def test_stopping_lets_a_run_end_and_kills_one_that_does_not(engine: Engine, jobs: Jobs, tmp_path: Path) -> None:
    engine.start(shared_runner=False)
    jobs.create("a", wait_for=str(tmp_path / "go"))
    jobs.create("b", wait_for=str(tmp_path / "never"))
    engine.wait_run("a", 1)
    engine.wait_run("b", 1)
    (tmp_path / "go").touch()
    engine.controller.stop(2)
    assert engine.own_runner.pid is None
    assert not jobs.events("b")
