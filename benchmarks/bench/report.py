"""RESULTS.md: the goals, and a table of each workload. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.goals import goals
from bench.peers import catalog
from bench.summary import NOTHING, Samples, mean, ratio, seconds, time_of


def table(samples: Samples, workload: str, titles: Mapping[str, str]) -> list[str]:
    """The rows of one workload, with peers in their order."""
    ours = time_of(samples, workload, catalog.OURS)
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
        time = time_of(samples, workload, peer)
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
            f"{mean(counted):.1f}" if any(counted) else NOTHING,
            f"{mean(s.reads / jobs for s in found):.1f} + {mean(s.writes / jobs for s in found):.1f}",
            f"{mean(s.cpu / jobs for s in found):.3f}",
            f"{max(s.peak_bytes for s in found) / 2**20:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
        notes = [f"{s.pods_made} of {s.pods} pods after {s.seconds:.0f} s" for s in found if not s.complete]
        if notes:
            lines.append(
                f"| | stopped early: {'; '.join(notes)}; the time is extrapolated from this rate |" + " |" * 11
            )
    return [*lines, ""]


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
