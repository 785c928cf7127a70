"""RESULTS.md: the goals, and the times of all workloads; and RESULTS.csv, a row for each workload and peer. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from devtools.lab.bench.goals import goals
from devtools.lab.bench.peers import catalog
from devtools.lab.bench.summary import NOTHING, Samples, mean, ratio, seconds, time_of

OURS = next(peer.title for peer in catalog.PEERS if peer.name == catalog.OURS)
WORKLOAD, PEER, TIME, BY_OURS = "workload", "peer", "all pods, s", "by ours"
Rows = Sequence[Mapping[str, str]]


def rows(samples: Samples, titles: Mapping[str, str]) -> Rows:
    """What each peer needed for each workload, with peers in their order."""
    return [
        _row(samples, workload, peer, title)
        for workload in samples.workloads()
        for peer, title in titles.items()
        if samples.of(workload, peer)
    ]


def _row(samples: Samples, workload: str, peer: str, title: str) -> Mapping[str, str]:
    found = samples.of(workload, peer)
    time, ours = time_of(samples, workload, peer), time_of(samples, workload, catalog.OURS)
    jobs = max(1, found[0].jobs)
    counted = [s.reconciles / jobs for s in found]
    cut = [f"{s.pods_made} of {s.pods} pods after {s.seconds:.0f} s" for s in found if not s.complete]
    return {
        WORKLOAD: workload,
        PEER: title,
        "jobs of pods": f"{found[0].jobs} of {found[0].pods // jobs}",
        "rounds": str(len(found)),
        TIME: ("> " if cut else "") + seconds(time.median if time else None),
        "lowest to highest": f"{seconds(time.low)} to {seconds(time.high)}" if time else NOTHING,
        BY_OURS: ratio(ours.median if ours else None, time.median if time else None),
        **{
            f"{title} p50 / p99": " / ".join(seconds(samples.p(workload, peer, share, what)) for share in (0.5, 0.99))
            for title, what in (("first pod", "first_pod"), ("all pods", "all_pods"), ("Running", "running"))
        },
        "reconciles a job": f"{mean(counted):.1f}" if any(counted) else NOTHING,
        "reads + writes a job": " + ".join(
            f"{mean(each):.1f}" for each in ([s.reads / jobs for s in found], [s.writes / jobs for s in found])
        ),
        "CPU s a job": f"{mean(s.cpu / jobs for s in found):.3f}",
        "peak MiB": f"{max(s.peak_bytes for s in found) / 2**20:.0f}",
        "stopped early": "; ".join(cut),
    }


def as_csv(found: Rows) -> str:
    """RESULTS.csv. The time of a peer that was stopped early is extrapolated from its rate."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(found[0]) if found else [WORKLOAD, PEER], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def times(found: Rows) -> Iterable[str]:
    """One table: a workload a row, a peer a column, with the time in seconds and the ratio to ours."""
    peers = list(dict.fromkeys(row[PEER] for row in found))
    cells = {(row[WORKLOAD], row[PEER]): row for row in found if row[TIME] != NOTHING and row[BY_OURS] != NOTHING}
    yield f"| {WORKLOAD} | {' | '.join(peers)} |"
    yield "| --- |" + " --- |" * len(peers)
    for workload in dict.fromkeys(workload for workload, _ in cells):
        own = [cells.get((workload, peer)) for peer in peers]
        yield f"| {workload} | " + " | ".join(_time(row) for row in own) + " |"


def _time(row: Mapping[str, str] | None) -> str:
    if row is None:
        return NOTHING
    return row[TIME] if row[PEER] == OURS else f"{row[TIME]} ({row[BY_OURS]})"


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
        "Written by the benchmark; all numbers are from one run on one machine.",
        "Times are seconds from the API server's acceptance of a job until its pods exist, the median of the rounds.",
        "In the goals, the ratio of the most different rounds is in parentheses.",
        "[RESULTS.csv](RESULTS.csv) has a row for each workload and peer, and [README.md](README.md) describes both.",
        "",
        *(f"- {key}: {value}" for key, value in facts.items()),
        "",
        "## Goals",
        "",
        "| goal | found | reached |",
        "| --- | --- | --- |",
        *(f"| {goal.text} | {goal.found} | {goal.result} |" for goal in goals(samples, replicas)),
        "",
        "`tests/e2e/test_no_op.py` tests that a reconcile with nothing to do reads nothing either (5.).",
        "The growth to 10,000 jobs (6.) is a separate run: [GROWTH.md](GROWTH.md).",
        "",
        "## The workloads",
        "",
        "A peer's time is followed by its ratio to this operator's.",
        "",
        *times(rows(samples, titles)),
        "",
    ]
    if left_out:
        lines += ["## Skipped", "", *(f"- {line}" for line in left_out), ""]
    return "\n".join(lines)
