"""How far the training of a job is whose program reports nothing: by its log, and a pattern that the job has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dljob.api import Api, Request, Response
from dljob.errors import DljobError
from dljob.kinds import Kind, Resource, kind_of
from dljob.logs.line import is_removed
from dljob.logs.pattern import NoProgress, Pattern
from dljob.logs.read import REMOVED, explain
from dljob.logs.show import written_last
from dljob.logs.source import Choice, Source, sources
from dljob.progress import is_reported
from dljob.view import replica_of, replica_specs

ANNOTATION = "dljob.operator/progress-pattern"
"""Of a job: a regular expression in RE2's syntax, with a group ``percent``, or with ``done`` and ``total``."""
LINES, BYTES = 100, 64 * 1024
"""The end of the log that is searched."""
SECONDS = 5.0
"""Until a node that does not answer is given up: a page waits for it."""
_FIRST = ("master", "chief", "launcher", "worker")
"""Types whose replica 0 is rank 0; the first of them that a job has."""


@dataclass(frozen=True, slots=True)
class LogProgress:
    """What the log says."""

    percent: int | None
    sentence: str
    """The percentage and where it is from, or why there is none."""


def log_progress(api: Api, job: Resource, pods: Iterable[Resource]) -> LogProgress | None:
    """By the log of rank 0, which is read with the user's own rights; ``pods`` are those of the job.

    ``None`` for a job without a pattern, or whose program reports its progress.
    """
    text = _pattern(job)
    if not text or is_reported(job.get("status")):
        return None
    try:
        pattern = Pattern(text)
        source = _rank_0(job, pods)
        percent = pattern.percent_in(_last_lines(api, source))
    except (NoProgress, DljobError) as e:
        return LogProgress(None, f"unknown: {e}")
    if percent is None:
        return LogProgress(None, f"unknown: no line at the end of the log of {source.pod} matches its pattern")
    return LogProgress(percent, f"{percent}%, by the log of {source.pod}")


def _pattern(job: Resource) -> str:
    metadata = job.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    found = annotations.get(ANNOTATION) if isinstance(annotations, Mapping) else None
    return found if isinstance(found, str) else ""


def _rank_0(job: Resource, pods: Iterable[Resource]) -> Source:
    """The container of rank 0, of two pods that of the newest one. Raises NoProgress where it has no log."""
    kind = kind_of(job)
    type_ = _first_type(job, kind)
    own = [pod for pod in pods if _is_first(replica_of(pod, kind, job), type_)]
    own.sort(key=lambda pod: (str(pod["metadata"].get("creationTimestamp")), str(pod["metadata"].get("name"))))
    for source in sources(job, own[-1:], Choice()):
        if source.has_log(Choice()):
            return source
    raise NoProgress(f"there is no log of {type_.lower()}-0")


def _first_type(job: Resource, kind: Kind) -> str:
    types = [one.type for one in replica_specs(job, kind) if one.count]
    by_name = {name.lower(): name for name in types}
    return next((by_name[name] for name in _FIRST if name in by_name), types[0] if types else "worker")


def _is_first(replica: tuple[str, int | None], type_: str) -> bool:
    """Pods of a batch Job, as of an MPIJob's launcher, have no index."""
    return replica[0] == type_ and replica[1] in (0, None)


def _last_lines(api: Api, source: Source) -> Sequence[str]:
    """The last lines, as a terminal would show them. Raises NoProgress and DljobError."""
    path = source.request(Choice()).path
    for lines in (LINES, LINES // 10, 1):
        query: dict[str, str | int] = {"container": source.container, "tailLines": lines, "limitBytes": BYTES}
        text = _read(api, Request(path, query), source)
        if len(text) < BYTES:  # else the API server has cut the end off, and not the begin
            break
    return [written_last(line) for line in text.decode(errors="replace").split("\n")[-LINES - 1 :]]


def _read(api: Api, request: Request, source: Source) -> bytes:
    """The begin of the answer, of ``BYTES`` at most, whatever the server sends. Raises NoProgress and DljobError."""
    text = b""
    for _, item in api.lines({source.pod: request}, SECONDS):
        if isinstance(item, Response) and (error := item.error()):
            raise NoProgress(explain(error, source).removesuffix("."))
        text += item.body if isinstance(item, Response) else item + b"\n"
        if is_removed(text):
            raise NoProgress(f"the log of {source.pod} is gone: {REMOVED}")
        if isinstance(item, Response) or len(text) >= BYTES:
            return text[:BYTES]
    raise NoProgress(f"the log of {source.pod} cannot be read within {SECONDS:g} s")
