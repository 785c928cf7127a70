"""What a program said last, cut to a length: of a log the end is what tells why."""

from __future__ import annotations

IN_STATUS = 2048
"""Characters kept in a job's status: as many as the kubelet takes from a log's end."""
IN_SENTENCE = 400
"""Characters quoted within a message: an Event has 1024, and the names of pods come before."""
_CUT = "..."


def log_tail(text: str, limit: int) -> str:
    """The end of ``text`` within ``limit`` characters: whole lines, or the end of the last one where that is longer."""
    text = text.strip()
    if len(text) <= limit:
        return text
    end = text[-limit:]
    if text[-limit - 1] != "\n":
        # the line that the cut went through goes, unless it is the last
        _, broken, rest = end.partition("\n")
        end = rest if broken and rest.strip() else _CUT + end[len(_CUT) :]
    return end.lstrip()
