"""Reads the logs that there are, in the order of time or as their lines arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dljob.api import Api, Response
from dljob.errors import ApiError, DljobError, NotFound
from dljob.logs.line import EARLIEST, LogLine, Moment, is_removed, moment
from dljob.logs.merge import Arrival, Merge
from dljob.logs.source import LONGEST, Choice, Key, Source

AT_ONCE = 200
"""Logs that are read at a time. The API server and the kubelets hold a connection for each."""
_PATIENCE = 0.5
REMOVED = NotFound("its node has removed it, as it does with containers of pods that have ended.")

Tell = Callable[[str], None]


@dataclass(slots=True)
class Place:
    """How far a log was read: a later request begins before it, at a full second."""

    at: Moment = EARLIEST
    time: str = ""
    """As the log has it."""
    lines: int = 0
    """Lines of that very time that were read."""
    _again: tuple[Moment, int] = (EARLIEST, 0)
    """Where the log was read to before it is read again: the time, and the lines of it that are still to come."""

    def pass_by(self, time: str) -> None:
        """A line of this time was read."""
        found = moment(time)
        if not time or found < self.at:
            return
        self.lines = self.lines + 1 if found == self.at else 1
        self.at, self.time = found, time

    def restart(self) -> None:
        """The log is read again, from :attr:`since` on."""
        self._again = self.at, self.lines

    @property
    def since(self) -> str:
        """From when to read on, RFC 3339; "" for the begin."""
        return f"{self.at[0]}Z" if self.time else ""

    def was_read(self, time: str) -> bool:
        """Whether a line of the log that is read again was read before."""
        found, (at, lines) = moment(time), self._again
        if not time or not lines or found > at:
            return False
        if found == at:
            self._again = at, lines - 1
        return True


def read(
    api: Api, sources: Sequence[Source], choice: Choice, tell: Tell, places: dict[Key, Place]
) -> Iterator[LogLine]:
    """The lines that the logs have now, in the order of time or of their arrival.

    ``tell`` gets a sentence for a log that cannot be read; ``places`` gets how far each log was read. Raises DljobError
    where none can be read.
    """
    merge = Arrival() if choice.unsorted else Merge()
    waiting = list(enumerate(sources))
    for number, source in waiting:
        merge.begin(number)
        places.setdefault(source.key, Place())
    read_any = not sources
    refused: list[DljobError] = []
    removed: set[int] = set()
    try:
        with api.streams() as streams:
            while waiting or len(streams):
                while waiting and len(streams) < AT_ONCE:
                    number, source = waiting.pop(0)
                    streams.add(number, source.request(choice), LONGEST)
                for number, item in streams.take(_PATIENCE):
                    if isinstance(item, bytes):
                        if is_removed(item):
                            removed.add(number)
                        else:
                            read_any = True
                            merge.add(number, item)
                        continue
                    error = _take_end(merge, number, item) or (REMOVED if number in removed else None)
                    replica = sources[number].replica
                    if error is None:
                        read_any = True
                    else:
                        refused.append(error)
                        tell(f"The log of {replica} cannot be read: {explain(error, sources[number])}")
                    if isinstance(item, Response) and item.cut:
                        tell(f"The log of {replica} is not complete: the connection broke ({item.cut}).")
                yield from _lines(merge, sources, places)
    finally:
        merge.close()
    if not read_any:
        raise refused[0]


def _take_end(merge: Merge | Arrival, number: int, item: Response | DljobError) -> DljobError | None:
    error = item if isinstance(item, DljobError) else item.error()
    if isinstance(item, Response) and error is None and item.body:
        if is_removed(item.body):
            error = REMOVED
        else:
            merge.add(number, item.body)  # a last line without its end
    merge.end(number)
    return error


def _lines(merge: Merge | Arrival, sources: Sequence[Source], places: dict[Key, Place]) -> Iterator[LogLine]:
    for number, time, text in merge.ready():
        source = sources[number]
        places[source.key].pass_by(time)
        yield line_of(source, time, text)


def line_of(source: Source, time: str, text: bytes) -> LogLine:
    return LogLine(time, source.replica, source.pod, source.container, text.removesuffix(b"\r"))


def explain(error: DljobError, source: Source) -> str:
    """Why a log cannot be read, in a sentence."""
    if isinstance(error, ApiError) and error.status == 403:
        return f"you may not get pods/log in the namespace {source.namespace}."
    if isinstance(error, ApiError) and error.status == 404:
        return f"the pod {source.pod} is gone."
    return str(error)
