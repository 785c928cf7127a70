"""Tables, ratios and results of goals from samples. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench import plan
from bench.measures import Sample, Spread, known, percentile, spread
from bench.peers import catalog

NOTHING = "-"
_CALLS_OF_A_JOB = 20  # Services, statuses, Events: independent of the number of replicas


@dataclass(frozen=True)
class Goal:
    """A performance goal. ``reached`` is None if it was not measured."""

    text: str
    found: str
    reached: bool | None

    @property
    def result(self) -> str:
        return {True: "yes", False: "**no**", None: "not measured"}[self.reached]


class Samples:
    """All samples of a run, by workload and peer."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._all = list(samples)

    def workloads(self) -> list[str]:
        return list(dict.fromkeys(sample.workload for sample in self._all))

    def of(self, workload: str, peer: str) -> list[Sample]:
        return [sample for sample in self._all if (sample.workload, sample.peer) == (workload, peer)]

    def wall(self, workload: str, peer: str) -> Spread | None:
        return spread([least for sample in self.of(workload, peer) if (least := sample.least) is not None])

    def p(self, workload: str, peer: str, share: float, what: str = "all_pods") -> float | None:
        values = known([value for sample in self.of(workload, peer) for value in getattr(sample, what)])
        return percentile(values, share) if values else None


def seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def ratio(ours: float | None, theirs: float | None) -> str:
    """Their time divided by ours; below 1 they are faster."""
    return NOTHING if not ours or theirs is None else f"{theirs / ours:.2f}"


def table(samples: Samples, workload: str, titles: Mapping[str, str]) -> list[str]:
    """The rows of one workload, with peers in their order."""
    ours = _time(samples, workload, catalog.OURS)
    lines = [
        f"### {workload}",
        "",
        "| peer | jobs of pods | rounds | all pods, s | lowest to highest | by ours | first pod p50 / p99 |"
        " all pods p50 / p99 | Running p50 / p99 | reconciles a job | reads + writes a job | CPU s a job |"
        " peak MiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for peer, title in titles.items():
        found = samples.of(workload, peer)
        if not found:
            continue
        time = _time(samples, workload, peer)
        jobs = max(1, found[0].jobs)
        counted = [s.reconciles / jobs for s in found]
        cut = sum(not sample.complete for sample in found)
        cells = [
            title,
            f"{found[0].jobs} of {found[0].pods // jobs}",
            str(len(found)),
            ("> " if cut else "") + seconds(time.median if time else None),
            f"{seconds(time.low)} to {seconds(time.high)}" if time else NOTHING,
            ratio(ours.median if ours else None, time.median if time else None),
            *(
                f"{seconds(samples.p(workload, peer, 0.5, what))} / {seconds(samples.p(workload, peer, 0.99, what))}"
                for what in ("first_pod", "all_pods", "running")
            ),
            f"{_mean(counted):.1f}" if any(counted) else NOTHING,
            f"{_mean(s.reads / jobs for s in found):.1f} + {_mean(s.writes / jobs for s in found):.1f}",
            f"{_mean(s.cpu / jobs for s in found):.3f}",
            f"{max(s.peak_bytes for s in found) / 2**20:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
        notes = [f"{s.pods_made} of {s.pods} pods after {s.seconds:.0f} s" for s in found if not s.complete]
        if notes:
            lines.append(
                f"| | stopped early: {'; '.join(notes)}; the time is extrapolated from this rate |" + " |" * 11
            )
    return [*lines, ""]


def _time(samples: Samples, workload: str, peer: str) -> Spread | None:
    """The time that goals compare: the median of a job if they are created one by one, else until the last pod."""
    if workload in (plan.ONE, plan.ALONE, plan.FINISHED, plan.CHANGE, plan.BEFORE, plan.BESIDE):
        medians = [percentile(values, 0.5) for s in samples.of(workload, peer) if (values := known(s.all_pods))]
        return spread(medians)
    return samples.wall(workload, peer)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def goals(samples: Samples, sizes_replicas: Sequence[int]) -> list[Goal]:
    """The goals, evaluated with this run's samples."""

    def at_most(text: str, workload: str, peer: str, factor: float) -> Goal:
        mine, theirs = _time(samples, workload, catalog.OURS), _time(samples, workload, peer)
        if mine is None or theirs is None:
            return Goal(text, NOTHING, None)
        found = f"{seconds(mine.median)} s against {seconds(theirs.median)} s: {mine.median / theirs.median:.2f} times"
        if max(mine.rounds, theirs.rounds) > 1:
            found += f" ({mine.low / theirs.high:.2f} to {mine.high / theirs.low:.2f})"
        return Goal(text, found, mine.median <= factor * theirs.median)

    default, lifted, baseline, stock = catalog.DEFAULT, catalog.LIFTED, catalog.BASELINE, catalog.STOCK
    found = [
        at_most("1. one job: no slower than training-operator", plan.ONE, default, 1.0),
        at_most("1. one job: under 1/50 of the stock Ansible way", plan.ONE, stock, 1 / 50),
    ]
    for workload in (plan.MANY, plan.MOST):
        found += [
            at_most(f"2. {workload}: at most a quarter of training-operator's time", workload, default, 0.25),
            at_most(f"2. {workload}: no slower than it with its limits lifted", workload, lifted, 1.0),
            at_most(f"2. {workload}: within twice the baseline", workload, baseline, 2.0),
        ]
    if sizes_replicas:
        large = f"{max(sizes_replicas)} replicas"
        found += [
            at_most(f"3. {large}: at most a fifth of training-operator's time", large, default, 0.2),
            at_most(f"3. {large}: within 1.5 times the baseline", large, baseline, 1.5),
            _no_call_but_creation(samples, large),
        ]
    found += [_finished_cost(samples), _nothing_to_do(samples), _growth(samples), _idle(samples)]
    return [*found, _fairness(samples, 0.5), _fairness(samples, 0.99)]


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
    alone, among = (_time(samples, workload, catalog.OURS) for workload in (plan.ALONE, plan.FINISHED))
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
    created = [int(s.extra["pods_of_the_large_job"]) for s in samples.of(plan.BESIDE, catalog.OURS)]
    return Goal(text, f"{found}; the large job had {max(created)} pods afterwards", beside <= 2 * alone)


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
    few, many = ([s.cpu / s.jobs for s in samples.of(w, catalog.OURS) if s.complete] for w in (plan.MANY, plan.MOST))
    if not few or not many:
        return Goal(text, NOTHING, None)
    share = _mean(many) / _mean(few)
    return Goal(text, f"{_mean(many):.3f} s against {_mean(few):.3f} s: {share:.2f} times", share <= 1.25)


def _idle(samples: Samples) -> Goal:
    shares = [s.extra["core_share"] for s in samples.of(plan.IDLE, catalog.OURS)]
    text = "7. idle: below 1% of a core"
    return Goal(text, f"{100 * max(shares):.2f}%", max(shares) < 0.01) if shares else Goal(text, NOTHING, None)


def document(
    samples: Samples,
    titles: Mapping[str, str],
    facts: Mapping[str, str],
    replicas: Sequence[int],
    left_out: Sequence[str],
) -> str:
    """RESULTS.md."""
    lines = [
        "# Results of `make bench`",
        "",
        "Written by the benchmark; all numbers are from one run on one machine. Times are seconds from",
        "the API server's acceptance of a job until its pods exist; the median of the rounds, and in parentheses the",
        "ratio of the most different rounds. [README.md](README.md) describes the columns and the peers.",
        "",
        *(f"- {key}: {value}" for key, value in facts.items()),
        "",
        "## Goals",
        "",
        "| goal | found | reached |",
        "| --- | --- | --- |",
        *(f"| {goal.text} | {goal.found} | {goal.result} |" for goal in goals(samples, replicas)),
        "",
        "`tests/e2e/test_no_op.py` tests that a reconcile with nothing to do reads nothing either (5.). The growth",
        "to 10,000 jobs (6.) is a separate run: [GROWTH.md](GROWTH.md).",
        "",
        "## The workloads",
        "",
    ]
    for workload in samples.workloads():
        lines += table(samples, workload, titles)
    if left_out:
        lines += ["## Skipped", "", *(f"- {line}" for line in left_out), ""]
    return "\n".join(lines)
