"""The performance goals, evaluated with the samples of a run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devtools.lab.bench import plan, workloads
from devtools.lab.bench.peers import catalog
from devtools.lab.bench.summary import NOTHING, Samples, mean, seconds, time_of

_CALLS_OF_A_JOB = 20  # Services, statuses, Events: independent of the number of replicas
_KINDS = tuple(f" {kind}s" for kind in workloads.OTHER_KINDS)
"""How the names of workloads.of_kind end."""


@dataclass(frozen=True)
class Goal:
    """A performance goal. ``reached`` is None if it was not measured."""

    text: str
    found: str
    reached: bool | None

    @property
    def result(self) -> str:
        return {True: "yes", False: "**no**", None: "not measured"}[self.reached]


def goals(samples: Samples, sizes_replicas: Sequence[int]) -> list[Goal]:
    """The goals, evaluated with this run's samples; those of ansible-operator only where it took part."""
    default, lifted, stock = catalog.DEFAULT, catalog.LIFTED, catalog.STOCK
    python, go = catalog.BASELINE, catalog.GO_BASELINE

    def at_most(text: str, workload: str, peer: str, factor: float) -> Goal:
        return _at_most(samples, text, workload, peer, factor)

    found = [
        at_most("1. one job: no slower than training-operator", plan.ONE, default, 1.0),
        at_most("1. one job: under 1/50 of the stock Ansible way", plan.ONE, stock, 1 / 50),
    ]
    for workload in (plan.MANY, plan.MOST):
        found += [
            at_most(f"2. {workload}: at most a tenth of training-operator's time", workload, default, 0.1),
            at_most(f"2. {workload}: at most half of its time with its limits lifted", workload, lifted, 0.5),
            at_most(f"2. {workload}: within 1.15 times the baseline", workload, python, 1.15),
            at_most(f"2. {workload}: within 1.5 times the Go baseline", workload, go, 1.5),
            _cpu(samples, f"2. {workload}: CPU within twice the baseline's", workload, python, 2.0),
            _cpu(samples, f"2. {workload}: CPU at most half of training-operator's", workload, default, 0.5),
        ]
    if sizes_replicas:
        large = f"{max(sizes_replicas)} replicas"
        found += [
            at_most(f"3. {large}: at most a tenth of training-operator's time", large, default, 0.1),
            at_most(f"3. {large}: at most half of its time with its limits lifted", large, lifted, 0.5),
            at_most(f"3. {large}: within 1.15 times the baseline", large, python, 1.15),
            at_most(f"3. {large}: within 1.5 times the Go baseline", large, go, 1.5),
            _no_call_but_creation(samples, large),
        ]
    for workload in samples.workloads():
        if workload.endswith(_KINDS) and samples.of(workload, lifted):
            text = f"2. {workload}: no slower than training-operator with its limits lifted"
            found.append(at_most(text, workload, lifted, 1.0))
    found += [_finished_cost(samples), _nothing_to_do(samples), _growth(samples), _idle(samples)]
    found += [_idle_memory(samples, "7. idle: at most 120 MiB", catalog.OURS, 120)]
    found += [_fairness(samples, 0.5), _fairness(samples, 0.99)]
    if samples.of(plan.ONE, catalog.ANSIBLE_OPERATOR):
        found += _of_ansible_operator(samples, sizes_replicas)
    return found


def _of_ansible_operator(samples: Samples, sizes_replicas: Sequence[int]) -> list[Goal]:
    """The engine of the image, compared with the embedded one."""
    engine, what = catalog.ANSIBLE_OPERATOR, "9. ansible-operator engine, "
    found = [_at_most(samples, f"{what}one job: within 3 times", plan.ONE, catalog.OURS, 3.0, engine)]
    for workload in (plan.MANY, plan.MOST):
        found += [
            _at_most(samples, f"{what}{workload}: within twice", workload, catalog.OURS, 2.0, engine),
            _at_most(
                samples, f"{what}{workload}: a quarter of training-operator's time", workload, catalog.DEFAULT, 0.25,
                engine,
            ),
            _cpu(samples, f"{what}{workload}: CPU within 3 times", workload, catalog.OURS, 3.0, engine),
        ]  # fmt: skip
    if sizes_replicas:
        large = f"{max(sizes_replicas)} replicas"
        found.append(_at_most(samples, f"{what}{large}: within 1.2 times", large, catalog.OURS, 1.2, engine))
    return [*found, _idle_memory(samples, f"{what}idle: at most 150 MiB", engine, 150)]


def _at_most(samples: Samples, text: str, workload: str, peer: str, factor: float, subject: str = catalog.OURS) -> Goal:
    """The subject's time in a workload, compared with a peer's."""
    mine, theirs = time_of(samples, workload, subject), time_of(samples, workload, peer)
    if mine is None or theirs is None:
        return Goal(text, NOTHING, None)
    found = f"{seconds(mine.median)} s against {seconds(theirs.median)} s: {mine.median / theirs.median:.2f} times"
    if max(mine.rounds, theirs.rounds) > 1:
        found += f" ({mine.low / theirs.high:.2f} to {mine.high / theirs.low:.2f})"
    return Goal(text, found, mine.median <= factor * theirs.median)


def _cpu(samples: Samples, text: str, workload: str, peer: str, factor: float, subject: str = catalog.OURS) -> Goal:
    """The subject's CPU time a job in a workload, compared with a peer's."""
    mine, theirs = (_cpu_of_a_job(samples, workload, one) for one in (subject, peer))
    if not mine or not theirs:
        return Goal(text, NOTHING, None)
    return Goal(text, f"{mine:.3f} s against {theirs:.3f} s: {mine / theirs:.2f} times", mine <= factor * theirs)


def _cpu_of_a_job(samples: Samples, workload: str, peer: str) -> float:
    """Seconds; 0 if not measured. A peer that was stopped early has not used all that its jobs need."""
    return mean(s.cpu / s.jobs for s in samples.of(workload, peer) if s.complete)


def _idle_memory(samples: Samples, text: str, peer: str, most: int) -> Goal:
    """MiB of all processes together."""
    found = [s.peak_bytes / 2**20 for s in samples.of(plan.IDLE, peer)]
    return Goal(text, f"{max(found):.0f} MiB", max(found) <= most) if found else Goal(text, NOTHING, None)


def _no_call_but_creation(samples: Samples, workload: str) -> Goal:
    text = f"3. {workload}: no API call per replica but its pod's creation"
    whole = [s for s in samples.of(workload, catalog.OURS) if s.complete]
    if not whole:
        return Goal(text, NOTHING, None)
    beyond = max(s.reads + s.writes - s.pods for s in whole)
    return Goal(text, f"{beyond:.0f} calls beyond the pods' creation", beyond <= _CALLS_OF_A_JOB)


def _finished_cost(samples: Samples) -> Goal:
    """Compared with jobs of the same session, minutes before, because the machine's speed varies between sessions."""
    text = "4. a new job among finished ones: within 1.2 times one without them"
    alone, among = (time_of(samples, workload, catalog.OURS) for workload in (plan.ALONE, plan.FINISHED))
    if alone is None or among is None:
        return Goal(text, NOTHING, None)
    share = among.median / alone.median
    return Goal(text, f"{seconds(among.median)} s against {seconds(alone.median)} s: {share:.2f} times", share <= 1.2)


def _fairness(samples: Samples, share: float) -> Goal:
    """Both of one session."""
    text = f"8. a small job while a large one is created: within twice its time alone (p{100 * share:.0f})"
    alone, beside = (samples.p(workload, catalog.OURS, share) for workload in (plan.BEFORE, plan.BESIDE))
    if not alone or beside is None:
        return Goal(text, NOTHING, None)
    found = f"{seconds(beside)} s against {seconds(alone)} s: {beside / alone:.2f} times"
    last = samples.of(plan.BESIDE, catalog.OURS)[-1]
    created = f"{last.extra['pods_of_the_large_job']:.0f} of {last.extra['large']:.0f} pods"
    return Goal(text, f"{found}; the large job had {created} when the last small one began", beside <= 2 * alone)


def _nothing_to_do(samples: Samples) -> Goal:
    """A starting operator reconciles every existing job; only the new one needs a write."""
    text = "5. a reconcile with nothing to do: no write"
    restarts = [s for s in samples.of(plan.RESTART, catalog.OURS) if s.complete]
    if not restarts:
        return Goal(text, NOTHING, None)
    worst = max(restarts, key=lambda s: s.writes)
    found = f"started among {worst.extra['present']:.0f} jobs: {worst.writes:.0f} writes, all of a new job's"
    if worst.writes > _CALLS_OF_A_JOB:
        found = f"started among {worst.extra['present']:.0f} jobs: {worst.writes:.0f} writes"
    return Goal(text, found, worst.writes <= _CALLS_OF_A_JOB)


def _growth(samples: Samples) -> Goal:
    text = "6. cost grows linearly: CPU of a job with many others within 1.25 times that with few"
    few, many = (_cpu_of_a_job(samples, workload, catalog.OURS) for workload in (plan.MANY, plan.MOST))
    if not few or not many:
        return Goal(text, NOTHING, None)
    share = many / few
    return Goal(text, f"{many:.3f} s against {few:.3f} s: {share:.2f} times", share <= 1.25)


def _idle(samples: Samples) -> Goal:
    shares = [s.extra["core_share"] for s in samples.of(plan.IDLE, catalog.OURS)]
    text = "7. idle: below 1% of a core"
    return Goal(text, f"{100 * max(shares):.2f}%", max(shares) < 0.01) if shares else Goal(text, NOTHING, None)
