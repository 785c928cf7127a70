"""Truncates a log to its end, which usually has the error."""

from __future__ import annotations

IN_STATUS = 2048
"""Characters kept in a job's status, as many as the kubelet keeps of a log."""
IN_SENTENCE = 400
"""Characters quoted in a message. An Event's message has at most 1024, including the names of pods."""
_CUT = "..."


def log_tail(text: str, limit: int) -> str:
    """The last ``limit`` characters of ``text`` at most: whole lines, or the end of the last line if it is longer."""
    text = text.strip()
    if len(text) <= limit:
        return text
    end = text[-limit:]
    if text[-limit - 1] != "\n":
        # drop the first, incomplete line unless it is also the last
        _, broken, rest = end.partition("\n")
        end = rest if broken and rest.strip() else _CUT + end[len(_CUT) :]
    return end.lstrip()
