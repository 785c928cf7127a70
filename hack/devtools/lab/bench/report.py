"""RESULTS.md: the goals, and the times of all workloads; and RESULTS.csv, a row for each workload and peer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devtools.lab.bench import peers
from devtools.lab.bench.goals import goals
from devtools.lab.bench.measures import NOTHING, Samples, mean, ratio, seconds, time_of
from devtools.lab.bench.workloads import Sizes
from devtools.testbed.report import listed, table

OURS = next(peer.title for peer in peers.PEERS if peer.name == peers.OURS)
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
    time, ours = time_of(samples, workload, peer), time_of(samples, workload, peers.OURS)
    jobs = max(1, found[0].jobs)
    counted = [s.reconciles / jobs for s in found]
    cut = [f"{s.pods_made} of {s.pods} pods after {s.seconds:.0f} s" for s in found if not s.complete]
    return {
        WORKLOAD: workload,
        PEER: title,
        "jobs of pods": f"{found[0].jobs} of {found[0].pods // jobs}",
        "rounds": str(len({s.round for s in found})),
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


def times(found: Rows) -> list[str]:
    """One table: a workload a row, a peer a column, with the time in seconds and the ratio to ours."""
    every = list(dict.fromkeys(row[PEER] for row in found))
    cells = {(row[WORKLOAD], row[PEER]): row for row in found if row[TIME] != NOTHING and row[BY_OURS] != NOTHING}
    workloads = dict.fromkeys(workload for workload, _ in cells)
    rows_ = ([workload, *(_time(cells.get((workload, peer))) for peer in every)] for workload in workloads)
    return table([WORKLOAD, *every], rows_)


def _time(row: Mapping[str, str] | None) -> str:
    if row is None:
        return NOTHING
    return row[TIME] if row[PEER] == OURS else f"{row[TIME]} ({row[BY_OURS]})"


def document(
    samples: Samples,
    titles: Mapping[str, str],
    facts: Mapping[str, str],
    sizes: Sizes,
    left_out: Sequence[str],
) -> str:
    """RESULTS.md."""
    lines = [
        "# Results of `make bench`",
        "",
        "Written by the benchmark; all numbers are from one run on one machine.",
        "Times are seconds from the API server's acceptance of a job until its pods exist, the median of the rounds.",
        "In the goals, the ratio of the most different rounds is in parentheses; one of a single sample says so.",
        "[RESULTS.csv](RESULTS.csv) has a row for each workload and peer, and [README.md](README.md) describes both.",
        "",
        *listed(facts),
        "",
        "## Goals",
        "",
        *table(
            ("goal", "found", "reached"),
            ((goal.text, goal.found, goal.result) for goal in goals(samples, sizes)),
        ),
        "",
        "`tests/e2e/test_no_op.py` tests that a reconcile with nothing to do reads nothing either (5.).",
        "The growth to 10,000 jobs (6., 13.) is a separate run: [GROWTH.md](GROWTH.md).",
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
