"""The performance goals, evaluated with the samples of a run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from devtools.lab.bench import peers, plan, workloads
from devtools.lab.bench.measures import NOTHING, Samples, mean, seconds, time_of
from devtools.lab.bench.workloads import FULL, Sizes

_LIFTED = "training-operator without limits"
_CALLS_OF_A_JOB = 20  # Services, statuses, Events: independent of the number of replicas
_KINDS = tuple(f" {kind}s" for kind in workloads.OTHER_KINDS)
"""How the names of workloads.of_kind end."""


_TIMES = (
    ("at most a tenth of training-operator's time", peers.DEFAULT, 0.1),
    ("at most half of its time with its limits lifted", peers.LIFTED, 0.5),
    ("within 1.15 times the baseline", peers.BASELINE, 1.15),
    ("within 1.5 times the Go baseline", peers.GO_BASELINE, 1.5),
)
_CPU = (
    ("CPU within twice the baseline's", peers.BASELINE, 2.0),
    ("CPU at most half of training-operator's", peers.DEFAULT, 0.5),
)
Compare = Callable[..., "Goal"]
"""Compares a subject with a peer: :func:`_at_most` or :func:`_cpu`."""
Measured = tuple[str, bool] | None
"""What was found, and whether the goal is reached."""


@dataclass(frozen=True)
class Goal:
    """A performance goal. ``reached`` is None if it was not measured."""

    text: str
    found: str
    reached: bool | None

    @property
    def result(self) -> str:
        return {True: "yes", False: "**no**", None: "not measured"}[self.reached]


def goals(samples: Samples, sizes: Sizes = FULL) -> list[Goal]:
    """The goals, evaluated with this run's samples; those of ansible-operator only where it took part."""
    replicas = [workloads.of_replicas(pods) for pods in sizes.replicas]
    large = replicas[-1]

    def compared(of: Compare, number: str, workload: str, rows: Sequence[tuple[str, str, float]]) -> list[Goal]:
        return [of(samples, f"{number} {workload}: {text}", workload, peer, factor) for text, peer, factor in rows]

    found = [
        _at_most(samples, "1. one job: no slower than training-operator", plan.ONE, peers.DEFAULT, 1.0),
        _at_most(samples, "1. one job: under 1/50 of the stock Ansible way", plan.ONE, peers.STOCK, 1 / 50),
    ]
    for workload in (plan.MANY, plan.MOST):
        found += [*compared(_at_most, "2.", workload, _TIMES), *compared(_cpu, "2.", workload, _CPU)]
    calls = f"3. {large}: no API call per replica but its pod's creation"
    found += [*compared(_at_most, "3.", large, _TIMES), _goal(calls, _no_call_but_creation(samples, large))]
    for workload in samples.workloads():
        if workload.endswith(_KINDS) and samples.of(workload, peers.LIFTED):
            text = f"2. {workload}: no slower than training-operator with its limits lifted"
            found.append(_at_most(samples, text, workload, peers.LIFTED, 1.0))
    few, many = (_cpu_of_a_job(samples, workload, peers.OURS) for workload in (plan.MANY, plan.MOST))
    fair = "8. a small job while a large one is created: within twice its time alone"
    found += [
        _goal("4. a new job among finished ones: within 1.2 times one without them", _finished_cost(samples)),
        _goal("5. a reconcile with nothing to do: no write", _nothing_to_do(samples)),
        _goal(
            "6. cost grows linearly: CPU of a job with many others within 1.25 times that with few",
            _cpus(many, few, 1.25),
        ),
        _goal("7. idle: below 1% of a core", _idle(samples)),
        _goal("7. idle: at most 120 MiB", _idle_memory(samples, peers.OURS, 120)),
        *(_goal(f"{fair} (p{100 * share:.0f})", _fairness(samples, share)) for share in (0.5, 0.99)),
    ]
    if samples.of(plan.ONE, peers.ENGINE):
        found += _of_ansible_operator(samples, large)
    return [*found, *_of_round_3(samples, sizes, replicas)]


def _of_round_3(samples: Samples, sizes: Sizes, replicas: Sequence[str]) -> list[Goal]:
    """Against compiled peers, with a compiled HTTP client."""
    at_startup = workloads.of_kind(workloads.AT_STARTUP, sizes.of_each_kind)
    mpijobs = workloads.of_kind("MPIJob", sizes.of_each_kind)
    both = [w for w in samples.workloads() if samples.of(w, peers.LIFTED) and w not in (plan.IDLE, plan.BESIDE)]
    within = {
        plan.ONE: 0.4, plan.MANY: 0.45, plan.MOST: 0.35, **dict.fromkeys(replicas, 0.3), plan.CHANGE: 1.0,
        plan.RESTART: 1.0,
    }  # fmt: skip
    of_go = (plan.MANY, plan.MOST, *replicas, workloads.of_replicas(sizes.large))
    found = [
        *(
            _at_most(samples, f"10. {one}: at most {factor} of the time of {_LIFTED}", one, peers.LIFTED, factor)
            for one, factor in within.items()
        ),
        _at_most(
            samples, f"10. {at_startup}: no slower than v1's of {_LIFTED}", at_startup, peers.LIFTED, 1.0,
            theirs_in=mpijobs,
        ),
        _goal(f"10. {plan.ONE}: first pod (p50) no later than with {_LIFTED}", _first_pod(samples)),
        *(
            _cpu(samples, f"10. {one}: CPU at most 0.7 of that of {_LIFTED}", one, peers.LIFTED, 0.7, theirs_in=theirs)
            for one, theirs in (*((workload, "") for workload in both), (at_startup, mpijobs))
        ),
        *(_at_most(samples, f"11. {w}: within 1.25 times the Go baseline", w, peers.GO_BASELINE, 1.25) for w in of_go),
        *(_cpu(samples, f"11. {w}: CPU within 2.5 times the Go baseline's", w, peers.GO_BASELINE, 2.5) for w in of_go),
    ]  # fmt: skip
    if samples.of(plan.ONE, peers.ENGINE):
        start, engine = "12. ansible-operator engine", peers.ENGINE
        text = f"{start}, {plan.MOST}: no slower than {_LIFTED}"
        found.append(_at_most(samples, text, plan.MOST, peers.LIFTED, 1.0, engine))
        for workload in (plan.ONE, plan.MANY, plan.MOST, *replicas):
            text = f"{start}, {workload}:"
            found += [
                _at_most(samples, f"{text} within 1.3 times", workload, peers.OURS, 1.3, engine),
                _cpu(samples, f"{text} CPU within twice", workload, peers.OURS, 2.0, engine),
            ]
        found.append(_goal("13. ansible-operator engine, idle: at most 110 MiB", _idle_memory(samples, engine, 110)))
    kept = "15. with usage and progress on"
    if samples.of(plan.ONE, peers.USAGE):
        for workload in (plan.ONE, plan.MANY, *replicas):
            text = f"{kept}, {workload}:"
            found += [
                _at_most(samples, f"{text} at most 1.05 times", workload, peers.OURS, 1.05, peers.USAGE),
                _cpu(samples, f"{text} CPU at most 1.05 times", workload, peers.OURS, 1.05, peers.USAGE),
            ]
    return [
        *found,
        _goal("13. idle: at most 70 MiB", _idle_memory(samples, peers.OURS, 70)),
        _goal("13. jobs of 1.5 MB: each adds at most twice its size to the memory", _long_specs(samples)),
        *(
            _at_most(samples, f"14. {text}: within the time of {_LIFTED}", workload, peers.LIFTED, 1.0)
            for workload, text in (
                (plan.FAILOVER, "the leader of many jobs is killed"),
                (plan.HANDOVER, "the leader of many jobs releases its Lease"),
            )
        ),
    ]


def _of_ansible_operator(samples: Samples, large: str) -> list[Goal]:
    """The engine of the image, compared with the embedded one."""

    def goal(of: Compare, text: str, workload: str, factor: float, peer: str = peers.OURS) -> Goal:
        return of(samples, f"9. ansible-operator engine, {workload}: {text}", workload, peer, factor, peers.ENGINE)

    found = [goal(_at_most, "within 3 times", plan.ONE, 3.0)]
    for workload in (plan.MANY, plan.MOST):
        found += [
            goal(_at_most, "within twice", workload, 2.0),
            goal(_at_most, "a quarter of training-operator's time", workload, 0.25, peers.DEFAULT),
            goal(_cpu, "CPU within 3 times", workload, 3.0),
        ]
    found.append(goal(_at_most, "within 1.2 times", large, 1.2))
    memory = _idle_memory(samples, peers.ENGINE, 150)
    return [*found, _goal("9. ansible-operator engine, idle: at most 150 MiB", memory)]


def _goal(text: str, measured: Measured) -> Goal:
    return Goal(text, *(measured or (NOTHING, None)))


def _at_most(
    samples: Samples, text: str, workload: str, peer: str, factor: float, subject: str = peers.OURS, theirs_in: str = ""
) -> Goal:
    """The subject's time in a workload, compared with a peer's in it, or in ``theirs_in``."""
    mine, theirs = time_of(samples, workload, subject), time_of(samples, theirs_in or workload, peer)
    if mine is None or theirs is None:
        return _goal(text, None)
    found = _compared(seconds(mine.median), seconds(theirs.median), mine.median / theirs.median)
    if max(mine.rounds, theirs.rounds) > 1:
        found += f" ({mine.low / theirs.high:.2f} to {mine.high / theirs.low:.2f})"
    if min(mine.rounds, theirs.rounds) == 1:
        found += f", {mine.rounds} and {theirs.rounds} samples"
    return Goal(text, found, mine.median <= factor * theirs.median)


def _compared(mine: str, theirs: str, share: float) -> str:
    return f"{mine} s against {theirs} s: {share:.2f} times"


def _cpu(
    samples: Samples, text: str, workload: str, peer: str, factor: float, subject: str = peers.OURS, theirs_in: str = ""
) -> Goal:
    """The subject's CPU time a job in a workload, compared with a peer's in it, or in ``theirs_in``."""
    mine = _cpu_of_a_job(samples, workload, subject)
    theirs = _cpu_of_a_job(samples, theirs_in or workload, peer)
    return _goal(text, _cpus(mine, theirs, factor))


def _cpus(mine: float, theirs: float, factor: float) -> Measured:
    if not mine or not theirs:
        return None
    return _compared(f"{mine:.3f}", f"{theirs:.3f}", mine / theirs), mine <= factor * theirs


def _cpu_of_a_job(samples: Samples, workload: str, peer: str) -> float:
    """Seconds; 0 if not measured. A peer that was stopped early has not used all that its jobs need."""
    return mean(s.cpu / s.jobs for s in samples.of(workload, peer) if s.complete)


def _idle_memory(samples: Samples, peer: str, most: int) -> Measured:
    """MiB of all processes together."""
    found = [s.peak_bytes / 2**20 for s in samples.of(plan.IDLE, peer)]
    return (f"{max(found):.0f} MiB", max(found) <= most) if found else None


def _first_pod(samples: Samples) -> Measured:
    mine, theirs = (samples.p(plan.ONE, peer, 0.5, "first_pod") for peer in (peers.OURS, peers.LIFTED))
    if mine is None or theirs is None:
        return None
    return _compared(seconds(mine), seconds(theirs), mine / theirs), mine <= theirs


def _long_specs(samples: Samples) -> Measured:
    """Of a process that rests, with the workers that remain."""
    found = [s.extra for s in samples.of(plan.LONG, peers.OURS) if s.complete]
    if not found:
        return None
    factor = max((each["after"] - each["before"]) / each["spec_bytes"] for each in found)
    return f"{factor:.1f} times", factor <= 2


def _no_call_but_creation(samples: Samples, workload: str) -> Measured:
    beyond = [s.reads + s.writes - s.pods for s in samples.of(workload, peers.OURS) if s.complete]
    return (f"{max(beyond):.0f} calls beyond the pods' creation", max(beyond) <= _CALLS_OF_A_JOB) if beyond else None


def _finished_cost(samples: Samples) -> Measured:
    """Compared with jobs of the same session, minutes before, because the machine's speed varies between sessions."""
    alone, among = (time_of(samples, workload, peers.OURS) for workload in (plan.ALONE, plan.FINISHED))
    if alone is None or among is None:
        return None
    share = among.median / alone.median
    return _compared(seconds(among.median), seconds(alone.median), share), share <= 1.2


def _fairness(samples: Samples, share: float) -> Measured:
    """Both of one session."""
    alone, beside = (samples.p(workload, peers.OURS, share) for workload in (plan.BEFORE, plan.BESIDE))
    if not alone or beside is None:
        return None
    last = samples.of(plan.BESIDE, peers.OURS)[-1]
    created = f"{last.extra['pods_of_the_large_job']:.0f} of {last.extra['large']:.0f} pods"
    found = _compared(seconds(beside), seconds(alone), beside / alone)
    return f"{found}; the large job had {created} when the last small one began", beside <= 2 * alone


def _nothing_to_do(samples: Samples) -> Measured:
    """A starting operator reconciles every existing job; only the new one needs a write."""
    restarts = [s for s in samples.of(plan.RESTART, peers.OURS) if s.complete]
    if not restarts:
        return None
    worst = max(restarts, key=lambda s: s.writes)
    is_reached = worst.writes <= _CALLS_OF_A_JOB
    of_whom = ", all of a new job's" if is_reached else ""
    return f"started among {worst.extra['present']:.0f} jobs: {worst.writes:.0f} writes{of_whom}", is_reached


def _idle(samples: Samples) -> Measured:
    shares = [s.extra["core_share"] for s in samples.of(plan.IDLE, peers.OURS)]
    return (f"{100 * max(shares):.2f}%", max(shares) < 0.01) if shares else None
