from __future__ import annotations

import pytest
from devtools.lab.bench import goals, peers, plan, report
from devtools.lab.bench.measures import Sample, Samples
from devtools.lab.bench.workloads import FULL
from devtools.testbed.report import as_csv

TITLES = {peer.name: peer.title for peer in peers.PEERS}


def sample(workload: str, peer: str, *, round_: int = 1, wall: float | None = 1.0, **more: object) -> Sample:
    times = (wall, wall) if wall is not None else ()
    return Sample(workload, peer, round_, 2, 8, all_pods=times, wall=wall, **more)  # type: ignore[arg-type]


def verdicts(*samples: Sample) -> dict[str, bool | None]:
    return {goal.text: goal.reached for goal in goals.goals(Samples(samples))}


@pytest.mark.parametrize(
    ("ours", "theirs", "reached"), [(0.5, 0.5, True), (0.6, 0.5, False), (None, 0.5, None), (0.5, None, None)]
)
def test_one_job_must_be_no_slower(ours: float | None, theirs: float | None, reached: bool | None) -> None:
    found = verdicts(sample(plan.ONE, peers.OURS, wall=ours), sample(plan.ONE, peers.DEFAULT, wall=theirs))
    assert found["1. one job: no slower than training-operator"] is reached


def test_a_peer_that_was_cut_off_counts_with_what_it_would_have_taken() -> None:
    ours = sample(plan.MOST, peers.OURS, wall=9.0)
    cut = sample(plan.MOST, peers.DEFAULT, wall=None, seconds=50.0, pods_made=4)
    text = "2. most jobs: at most a tenth of training-operator's time"
    assert verdicts(ours, cut)[text] is True
    assert verdicts(sample(plan.MOST, peers.OURS, wall=11.0), cut)[text] is False


@pytest.mark.parametrize(("writes", "reached"), [(1010.0, True), (2000.0, False)])
def test_no_call_but_the_pods_creation(writes: float, reached: bool) -> None:
    one = Sample("1000 replicas", peers.OURS, 1, 1, 1000, wall=1.0, writes=writes)
    assert verdicts(one)["3. 1000 replicas: no API call per replica but its pod's creation"] is reached


@pytest.mark.parametrize(("share", "reached"), [(0.005, True), (0.02, False)])
def test_idle(share: float, reached: bool) -> None:
    assert (
        verdicts(sample(plan.IDLE, peers.OURS, extra={"core_share": share}))["7. idle: below 1% of a core"] is reached
    )


def test_finished_jobs_cost_nothing() -> None:
    text = "4. a new job among finished ones: within 1.2 times one without them"
    alone = sample(plan.ALONE, peers.OURS, wall=1.0)
    elsewhere = sample(plan.ONE, peers.OURS, wall=0.5)
    assert verdicts(elsewhere, alone, sample(plan.FINISHED, peers.OURS, wall=1.2))[text] is True
    assert verdicts(alone, sample(plan.FINISHED, peers.OURS, wall=1.3))[text] is False


@pytest.mark.parametrize(("writes", "reached"), [(10.0, True), (1010.0, False)])
def test_a_reconcile_with_nothing_to_do_writes_nothing(writes: float, reached: bool) -> None:
    one = Sample(plan.RESTART, peers.OURS, 1, 1, 4, wall=1.0, writes=writes, extra={"present": 1000})
    assert verdicts(one)["5. a reconcile with nothing to do: no write"] is reached


@pytest.mark.parametrize(("cpu", "reached"), [(12.0, True), (13.0, False)])
def test_the_cost_of_a_job_must_not_depend_on_how_many_there_are(cpu: float, reached: bool) -> None:
    few = Sample(plan.MANY, peers.OURS, 1, 100, 400, wall=1.0, cpu=1.0)
    many = Sample(plan.MOST, peers.OURS, 1, 1000, 4000, wall=9.0, cpu=cpu)
    text = "6. cost grows linearly: CPU of a job with many others within 1.25 times that with few"
    assert verdicts(few, many)[text] is reached
    assert verdicts(few)[text] is None


@pytest.mark.parametrize(
    ("text", "workload", "peer", "factor"),
    [
        ("2. many jobs: at most half of its time with its limits lifted", plan.MANY, peers.LIFTED, 0.5),
        ("2. many jobs: within 1.15 times the baseline", plan.MANY, peers.BASELINE, 1.15),
        ("2. most jobs: within 1.5 times the Go baseline", plan.MOST, peers.GO_BASELINE, 1.5),
        ("2. 20 TFJobs: no slower than training-operator with its limits lifted", "20 TFJobs", peers.LIFTED, 1.0),
        ("3. 1000 replicas: at most a tenth of training-operator's time", "1000 replicas", peers.DEFAULT, 0.1),
        ("3. 1000 replicas: within 1.15 times the baseline", "1000 replicas", peers.BASELINE, 1.15),
        *(
            (f"10. {w}: at most {factor} of the time of training-operator without limits", w, peers.LIFTED, factor)
            for w, factor in (
                (plan.ONE, 0.4), (plan.MANY, 0.45), (plan.MOST, 0.35), ("200 replicas", 0.3), ("1000 replicas", 0.3),
                (plan.CHANGE, 1.0), (plan.RESTART, 1.0),
            )
        ),
        *(
            (f"11. {w}: within 1.25 times the Go baseline", w, peers.GO_BASELINE, 1.25)
            for w in (plan.MANY, plan.MOST, "200 replicas", "1000 replicas", "5000 replicas")
        ),
        (
            "14. the leader of many jobs is killed: within the time of training-operator without limits",
            plan.FAILOVER, peers.LIFTED, 1.0,
        ),
        (
            "14. the leader of many jobs releases its Lease: within the time of training-operator without limits",
            plan.HANDOVER, peers.LIFTED, 1.0,
        ),
    ],
)  # fmt: skip
def test_a_time_is_compared_with_a_peers(text: str, workload: str, peer: str, factor: float) -> None:
    theirs = sample(workload, peer, wall=10.0)
    for wall, reached in ((10 * factor, True), (10 * factor + 0.1, False)):
        ours = sample(workload, peers.OURS, wall=wall, extra={"present": 1000.0})
        assert verdicts(ours, theirs)[text] is reached


@pytest.mark.parametrize(
    ("text", "workload", "peer", "factor"),
    [
        ("2. many jobs: CPU within twice the baseline's", plan.MANY, peers.BASELINE, 2.0),
        ("2. many jobs: CPU at most half of training-operator's", plan.MANY, peers.DEFAULT, 0.5),
        *(
            (f"10. {w}: CPU at most 0.7 of that of training-operator without limits", w, peers.LIFTED, 0.7)
            for w in (plan.ONE, "20 TFJobs", "200 replicas", plan.FAILOVER, plan.HANDOVER)
        ),
        ("11. 5000 replicas: CPU within 2.5 times the Go baseline's", "5000 replicas", peers.GO_BASELINE, 2.5),
    ],
)
def test_the_processor_time_is_compared_with_a_peers(text: str, workload: str, peer: str, factor: float) -> None:
    theirs = sample(workload, peer, cpu=10.0)
    assert verdicts(sample(workload, peers.OURS, cpu=10 * factor), theirs)[text] is True
    assert verdicts(sample(workload, peers.OURS, cpu=10 * factor + 0.1), theirs)[text] is False
    cut_off = sample(workload, peer, wall=None, cpu=10.0)
    assert verdicts(sample(workload, peers.OURS, cpu=1.0), cut_off)[text] is None


def test_launchers_at_once_are_compared_with_those_of_v1() -> None:
    ours = sample("20 AtStartup MPIJobs", peers.OURS, wall=2.0, cpu=7.0)
    found = verdicts(ours, sample("20 MPIJobs", peers.LIFTED, wall=2.0, cpu=10.0))
    assert found["10. 20 AtStartup MPIJobs: no slower than v1's of training-operator without limits"] is True
    assert found["10. 20 AtStartup MPIJobs: CPU at most 0.7 of that of training-operator without limits"] is True


@pytest.mark.parametrize(("first", "reached"), [(0.2, True), (0.3, False)])
def test_the_first_pod(first: float, reached: bool) -> None:
    ours, theirs = sample(plan.ONE, peers.OURS, first_pod=(first,)), sample(plan.ONE, peers.LIFTED, first_pod=(0.2,))
    text = "10. one job: first pod (p50) no later than with training-operator without limits"
    assert verdicts(ours, theirs)[text] is reached


@pytest.mark.parametrize(("after", "reached"), [(50.0, True), (51.0, False)])
def test_the_memory_for_long_specs(after: float, reached: bool) -> None:
    one = sample(plan.LONG, peers.OURS, extra={"before": 20.0, "after": after, "spec_bytes": 15.0})
    assert verdicts(one)["13. jobs of 1.5 MB: each adds at most twice its size to the memory"] is reached


@pytest.mark.parametrize(("goal", "most"), [("7. idle", 120), ("13. idle", 70)])
def test_the_memory_at_rest(goal: str, most: int) -> None:
    for mib, reached in ((most, True), (most + 1, False)):
        one = sample(plan.IDLE, peers.OURS, peak_bytes=mib * 2**20, extra={"core_share": 0.0})
        assert verdicts(one)[f"{goal}: at most {most} MiB"] is reached


def test_the_other_engine_is_compared_with_this_one() -> None:
    engine = peers.ENGINE
    ours = [sample(w, peers.OURS, wall=1.0, cpu=2.0) for w in (plan.ONE, plan.MANY, "1000 replicas")]
    assert not any("ansible-operator" in text for text in verdicts(*ours)), "it did not take part"
    theirs = [
        sample(plan.ONE, engine, wall=3.0),
        sample(plan.MANY, engine, wall=2.1, cpu=6.0),
        sample("1000 replicas", engine, wall=1.2),
        sample(plan.IDLE, engine, peak_bytes=151 * 2**20),
        sample(plan.MANY, peers.DEFAULT, wall=8.4),
    ]
    found = verdicts(*ours, *theirs)
    assert {text.partition(", ")[2]: reached for text, reached in found.items() if text.startswith("12.")} == {
        "most jobs: no slower than training-operator without limits": None,
        "one job: within 1.3 times": False,
        "one job: CPU within twice": None,
        "many jobs: within 1.3 times": False,
        "many jobs: CPU within twice": False,
        "most jobs: within 1.3 times": None,
        "most jobs: CPU within twice": None,
        "200 replicas: within 1.3 times": None,
        "200 replicas: CPU within twice": None,
        "1000 replicas: within 1.3 times": True,
        "1000 replicas: CPU within twice": None,
    }
    assert found["13. ansible-operator engine, idle: at most 110 MiB"] is False
    assert {text.partition(", ")[2]: reached for text, reached in found.items() if text.startswith("9.")} == {
        "one job: within 3 times": True,
        "many jobs: within twice": False,
        "many jobs: a quarter of training-operator's time": True,
        "many jobs: CPU within 3 times": True,
        "most jobs: within twice": None,
        "most jobs: a quarter of training-operator's time": None,
        "most jobs: CPU within 3 times": None,
        "1000 replicas: within 1.2 times": True,
        "idle: at most 150 MiB": False,
    }


def test_a_goal_shows_the_ratio_of_the_most_different_rounds() -> None:
    ours = (sample(plan.MANY, peers.OURS, round_=n, wall=w) for n, w in ((1, 3.0), (2, 2.0), (3, 4.0)))
    theirs = (sample(plan.MANY, peers.LIFTED, round_=n, wall=w) for n, w in ((1, 4.0), (2, 2.5), (3, 5.0)))
    (found,) = (
        g
        for g in goals.goals(Samples([*ours, *theirs]))
        if g.text.startswith("2. many jobs") and g.text.endswith("with its limits lifted")
    )
    assert found.found == "3.00 s against 4.00 s: 0.75 times (0.40 to 1.60)"


def test_a_table_has_the_ratio_the_spread_and_the_losses() -> None:
    samples = Samples(
        [
            *(
                sample(plan.MANY, peers.OURS, round_=n, wall=w, cpu=0.5, writes=20.0, reconciles=6.0)
                for n, w in ((1, 2.0), (2, 1.0), (3, 4.0))
            ),
            sample(plan.MANY, peers.BASELINE, wall=1.0, peak_bytes=2**20),
            sample(plan.MANY, peers.DEFAULT, wall=None, seconds=10.0, pods_made=4),
        ]
    )
    found = report.rows(samples, TITLES)
    ours, baseline, default = (list(row.values()) for row in found)
    assert ours[:7] == [plan.MANY, "this operator", "2 of 4", "3", "2.00", "1.00 to 4.00", "1.00"]
    assert (baseline[4], baseline[6], baseline[-2]) == ("1.00", "0.50", "1")
    assert (default[4], default[6], default[-1]) == ("> 20", "10.00", "4 of 8 pods after 10 s")
    assert ours[10:13] == ["3.0", "0.0 + 10.0", "0.250"]
    assert baseline[10] == "-"
    head, first, *_ = as_csv(list(found[0]), found).splitlines()
    assert head.startswith('workload,peer,jobs of pods,rounds,"all pods, s"') and first.startswith(
        "many jobs,this operator,"
    )
    table = list(report.times(found))
    assert table[0] == f"| workload | this operator | {TITLES[peers.BASELINE]} | {TITLES[peers.DEFAULT]} |"
    assert table[2:] == ["| many jobs | 2.00 | 1.00 (0.50) | > 20 (10.00) |"]


def test_the_document_lists_skipped_workloads_and_missed_goals() -> None:
    samples = Samples([sample(plan.ONE, peers.OURS, wall=2.0), sample(plan.ONE, peers.DEFAULT, wall=1.0)])
    text = report.document(samples, TITLES, {"machine": "of wood"}, FULL, ["round 2: no time left"])
    assert (
        "| 1. one job: no slower than training-operator | 2.00 s against 1.00 s: 2.00 times, 1 and 1 samples | **no** |"
        in text
    )
    assert "- machine: of wood" in text
    assert "- round 2: no time left" in text
    assert "not measured" in text
