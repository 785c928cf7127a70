"""Text for a terminal. What a cluster says goes through :func:`printable`: its control characters stay harmless."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from dljob import shared
from dljob.account import CPU
from dljob.errors import NotCreated
from dljob.events import event_rows
from dljob.kinds import Resource
from dljob.view import FAILED, FINAL, INVALID, QUEUED, RESTARTING, RUNNING, SUCCEEDED, SUSPENDED, JobView, is_gpu

_COLORS = {RUNNING: 32, SUCCEEDED: 36, FAILED: 31, INVALID: 31, RESTARTING: 33, QUEUED: 33, SUSPENDED: 33}
_TEXT_LIMIT = 60
_BAR = 20
_LONGEST_STATE = 10
_ALL = 100
"""Percent."""
MOST_METRICS = 8
"""Metrics of a line."""


def printable(text: object) -> str:
    """``text`` on one line, with an escape in place of each character that a terminal might act on."""
    line = str(text)
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else "\\n" if c == "\n" else _escape(ord(c)) for c in line)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def duration(seconds: float | None) -> str:
    """As kubectl writes ages: 12s, 3m5s, 2h10m, 5d; "" for ``None``."""
    if seconds is None:
        return ""
    left = max(0, int(seconds))
    for end, unit, small, names in ((120, 1, 0, "s"), (600, 60, 1, "ms"), (10800, 60, 0, "m"), (28800, 3600, 60, "hm"),
                                    (172800, 3600, 0, "h"), (691200, 86400, 3600, "dh")):  # fmt: skip
        if left < end:
            rest = left % unit // small if small else 0
            return f"{left // unit}{names[0]}" + (f"{rest}{names[1]}" if rest else "")
    return f"{left // 86400}d"


def size(number: float) -> str:
    """Bytes: 512Mi, 1.5Gi."""
    for unit in ("", "Ki", "Mi"):
        if number < 1024:
            return f"{number:.4g}{unit}"
        number /= 1024
    return f"{number:.4g}Gi" if number < 10240 else f"{number / 1024:.4g}Ti"


Column = Callable[[JobView], str]
COLUMNS: Mapping[str, Column] = {
    "NAMESPACE": lambda job: job.namespace,
    "NAME": lambda job: job.key,
    "STATE": lambda job: job.state,
    "READY": lambda job: job.ready,
    "GPUS": lambda job: str(job.requests.gpus),
    "RESTARTS": lambda job: str(job.restarts),
    "QUEUE": lambda job: job.queue,
    "RUNNING": lambda job: duration(job.durations.running),
    "PROGRESS": lambda job: progress_cell(job),
    "AGE": lambda job: duration(job.age),
    "CPU": lambda job: f"{job.requests.cpu:.4g}",
    "MEMORY": lambda job: size(job.requests.memory),
    "QUEUED": lambda job: duration(job.durations.queued),
    "NODES": lambda job: ",".join(job.nodes),
    "USER": lambda job: job.user,
    "REASON": lambda job: job.failure.reason if job.failure else job.reason,
}
OPTIONAL = ("PROGRESS",)
"""Columns of a table without ``-o wide`` only where a job has something there."""
WIDE = ("CPU", "MEMORY", "QUEUED", "NODES", "USER", "REASON")
SORT_KEYS: Mapping[str, Callable[[JobView], Any]] = {
    "namespace": lambda job: job.namespace,
    "name": lambda job: job.name,
    "kind": lambda job: job.resource,
    "state": lambda job: job.state,
    "ready": lambda job: sum(one.running + one.succeeded for one in job.replicas),
    "gpus": lambda job: job.requests.gpus,
    "cpu": lambda job: job.requests.cpu,
    "memory": lambda job: job.requests.memory,
    "restarts": lambda job: job.restarts,
    "queue": lambda job: job.queue,
    "running": lambda job: job.durations.running or 0.0,
    "progress": lambda job: -1 if job.progress is None or job.progress.percent is None else job.progress.percent,
    "age": lambda job: job.age,
    "user": lambda job: job.user,
}


def colors_wanted(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Only on a terminal, and not with NO_COLOR (no-color.org)."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb" and stream.isatty()


class Table:
    """Lines of columns, whose widths the first rows decide."""

    def __init__(self, names: Sequence[str], *, colored: bool = False) -> None:
        self._names = names
        self._colored = colored
        self._widths: list[int] = []

    def lines(self, rows: Iterable[Sequence[str]]) -> list[str]:
        """The rows, below the head when these are the first ones."""
        shown = [[_shortened(printable(cell)) for cell in row] for row in rows]
        if not self._widths:
            shown.insert(0, list(self._names))
            self._widths = [
                max(_LONGEST_STATE if name == "STATE" else 0, *(len(row[number]) for row in shown))
                for number, name in enumerate(self._names)
            ]
        return [self._line(row) for row in shown]

    def _line(self, row: Sequence[str]) -> str:
        last = len(row) - 1
        cells = [cell if number == last else cell.ljust(self._widths[number]) for number, cell in enumerate(row)]
        if self._colored and "STATE" in self._names:
            number = self._names.index("STATE")
            code = _COLORS.get(row[number])
            cells[number] = f"\x1b[{code}m{cells[number]}\x1b[0m" if code else cells[number]
        return "   ".join(cells).rstrip()


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 3] + "..."


class JobTable:
    """The table of ``dljob list``; it begins anew once a job needs one more column."""

    def __init__(self, *, wide: bool, namespaces: bool, colored: bool) -> None:
        self._left_out = {*(() if wide else (*WIDE, *OPTIONAL)), *(() if namespaces else ("NAMESPACE",))}
        self._colored = colored
        self._begin()

    def _begin(self) -> None:
        names = [name for name in COLUMNS if name not in self._left_out]
        self._columns = [COLUMNS[name] for name in names]
        self._table = Table(names, colored=self._colored)

    def lines(self, jobs: Iterable[JobView]) -> list[str]:
        """The rows, below the head where the table begins."""
        given = list(jobs)
        needed = {name for name in OPTIONAL if any(COLUMNS[name](job) for job in given)}
        if needed & self._left_out:
            self._left_out -= needed
            self._begin()
        return self._table.lines([column(job) for column in self._columns] for job in given)


def structured(data: Any, form: str) -> str:
    """JSON or YAML, in ASCII: both escape every other character. What is nested deeply comes on one line, as JSON."""
    try:
        if form == "json":
            return json.dumps(data, indent=2)
        writer = shared.module(shared.MANIFEST_WRITER)  # here: few commands need it
        return str(writer.write(data, allow_unicode=False)).removesuffix("\n")
    except RecursionError:
        return json.dumps(data)  # YAML too


def rescue(error: NotCreated) -> str:
    """What a user needs in order to create the deleted job."""
    return f"Keep this manifest, and create the job with `dljob submit -f FILE`:\n{structured(error.manifest, 'yaml')}"


def described(
    job: JobView, raw: Resource, pods: Sequence[Resource], events: Sequence[str], by_log: str = ""
) -> list[str]:
    """The lines of ``dljob describe``; ``by_log`` is what the log says of a job whose program reports nothing."""
    durations = job.durations
    fields = [
        ("Name", job.name),
        ("Namespace", job.namespace),
        ("Kind", f"{job.kind} ({job.api_version})"),
        ("Framework", job.framework),
        ("State", f"{job.state}{f': {job.reason}' if job.reason else ''}"),
        ("Created", f"{job.created} ({duration(job.age)} ago)"),
        ("Queued", duration(durations.queued)),
        ("Starting", duration(durations.starting)),
        ("Running", duration(durations.running)),
        ("Progress", "; ".join(filter(None, (progress_text(job), by_log)))),
        ("Queue", job.queue),
        ("Owner", job.owner),
        ("User", job.user),
        ("Restarts", str(job.restarts)),
        ("Requests", f"{job.requests.gpus} GPUs, {job.requests.cpu:.4g} CPUs, {size(job.requests.memory)} memory"),
        ("Used", used(job)),
        ("Nodes", ", ".join(job.nodes)),
    ]
    lines = [f"{name + ':':11} {printable(value)}" for name, value in fields if value]
    if job.failure:
        failure = job.failure
        where = " ".join(
            filter(None, (failure.pod and f"pod {failure.pod}", failure.container and f"container {failure.container}"))
        )
        code = "" if failure.exit_code is None else f"exit code {failure.exit_code}"
        head = ", ".join(filter(None, (failure.reason, where, code)))
        lines += [
            "Failure:",
            f"  {printable(head)}",
            *(f"  {printable(line)}" for line in failure.message.splitlines()),
        ]
    table = Table(("TYPE", "DESIRED", "PENDING", "RUNNING", "SUCCEEDED", "FAILED"))
    counts = (
        (one.type, *map(str, (one.desired, one.pending, one.running, one.succeeded, one.failed)))
        for one in job.replicas
    )
    lines += ["Replicas:", *_indented(table.lines(counts))]
    status = raw.get("status") if isinstance(raw.get("status"), Mapping) else {}
    conditions = [one for one in (status or {}).get("conditions") or () if isinstance(one, Mapping)]
    if conditions:
        keys = ("type", "status", "lastTransitionTime", "message")
        rows = ([str(one.get(key) or "") for key in keys] for one in conditions)
        lines += ["Conditions:", *_indented(Table(("TYPE", "STATUS", "SINCE", "MESSAGE")).lines(rows))]
    if pods:
        rows = (_pod_row(pod) for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])))
        lines += ["Pods:", *_indented(Table(("NAME", "PHASE", "RESTARTS", "NODE")).lines(rows))]
    return [*lines, *(["Events:", *_indented(events)] if events else [])]


def used(job: JobView) -> str:
    """What a job has used so far, and what kept it from running; "" where no operator keeps an account of it."""
    account = job.account
    if account is None:
        return ""
    amounts = f"{account.of(is_gpu):.2f} GPU hours, {account.of(lambda name: name == CPU):.2f} CPU hours"
    goodput = account.goodput(is_gpu)
    lost = [f"{one.count} {one.cause} ({duration(one.seconds)})" for one in account.interruptions]
    return "; ".join([amounts, *([] if goodput is None else [f"goodput {goodput:.1%}"]), *lost])


def progress_cell(job: JobView) -> str:
    """The percentage and the time left, as in ``45% ~13m``; "" where the job reports neither."""
    found = job.progress
    if found is None:
        return ""
    percent = "" if found.percent is None else f"{found.percent}%"
    left = "" if found.left is None or found.percent == _ALL else f"~{duration(found.left)}"
    return " ".join(filter(None, (percent, left)))


def progress_text(job: JobView) -> str:
    """All that a job reports of its progress, on one line; "" where it reports nothing."""
    return "; ".join(filter(None, (progress_head(job), metrics_text(job), ranks_text(job))))


def progress_head(job: JobView) -> str:
    """The percentage, the time left, and how old the report is."""
    found = job.progress
    if found is None:
        return ""
    percent = "" if found.percent is None else f"{found.percent}%"
    left = "" if found.left is None or found.percent == _ALL else f"{duration(found.left)} left"
    reported = "" if found.age is None else f"reported {duration(found.age)} ago"
    return ", ".join(filter(None, (percent, left, reported)))


def metrics_text(job: JobView) -> str:
    """The first metrics that a job reports, and how many more there are."""
    found = job.progress.metrics if job.progress else ()
    more = len(found) - MOST_METRICS
    shown = [f"{_shortened(one.name)} {_shortened(one.value)}" for one in found[:MOST_METRICS]]
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def ranks_text(job: JobView) -> str:
    """The slowest rank beside the others, where all ranks report."""
    found = job.progress.ranks if job.progress else None
    if found is None:
        return ""
    median = "" if found.median_step_seconds is None else f"median {found.median_step_seconds:.3g} s"
    count = "" if found.reporting is None else f"{found.reporting} rank{'' if found.reporting == 1 else 's'}"
    others = ", ".join(filter(None, (median, count)))
    slowest = found.slowest
    if slowest is None:
        return f"steps: {others}"
    where = f" on {slowest.node}" if slowest.node else ""
    step = "" if slowest.step_seconds is None else f", {slowest.step_seconds:.3g} s a step"
    return f"slowest: {slowest.replica}{where}{step}" + (f" ({others})" if others else "")


def _pod_row(pod: Resource) -> list[str]:
    status = pod.get("status") or {}
    restarts = sum(int(one.get("restartCount") or 0) for one in status.get("containerStatuses") or ())
    phase = "Terminating" if pod["metadata"].get("deletionTimestamp") else str(status.get("phase") or "")
    return [str(pod["metadata"]["name"]), phase, str(restarts), str((pod.get("spec") or {}).get("nodeName") or "")]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def event_lines(events: Sequence[Resource]) -> list[str]:
    """A table of Events; the message is not shortened."""
    rows = event_rows(events)
    head, *lines = Table(("LAST SEEN", "TYPE", "REASON", "OBJECT")).lines(row[:4] for row in rows)
    width = max(map(len, (head, *lines)))
    pairs = zip((head, *lines), ("MESSAGE", *(printable(row[4]) for row in rows)), strict=True)
    return [f"{line.ljust(width)}   {message}".rstrip() for line, message in pairs]


class Progress:
    """Follows a job: a bar that changes in place on a terminal, and otherwise a line for each change."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._in_place = self._stream.isatty()
        self._last = ""

    def __call__(self, job: JobView) -> None:
        desired = sum(one.desired for one in job.replicas)
        up = sum(one.running + one.succeeded for one in job.replicas)
        full = _BAR * min(up, desired) // desired if desired else 0
        text = f"{printable(job.key)} {job.state} {job.ready}"
        percent = job.progress.percent if job.progress else None
        if percent is not None:  # without the time left, each of whose changes would be a line
            full = _BAR * percent // _ALL
            text += f" {progress_cell(job) if self._in_place else f'{percent}%'}"
        if self._in_place:
            bar = "#" * full + "." * (_BAR - full)
            self._stream.write(f"\r\x1b[K[{bar}] {text}" + ("\n" if job.state in FINAL else ""))
        elif text != self._last:
            self._stream.write(text + "\n")
        self._last = text
        self._stream.flush()
