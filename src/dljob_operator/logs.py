"""Structured log lines: a short fixed message and fields, as text (`key=value`) or as one JSON object a line.

    _LOG.info("reconciled", extra=fields(kind="MXJob", namespace="default", name="digits", ok=True, seconds=0.12))

Field values may come from users and from the API server. Both formatters therefore write every record as exactly one
line: they escape line breaks and other characters that are not printable, and the text formatter quotes a value that
could be read as another field.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

_ATTRIBUTE = "dljob_fields"
_BARE = re.compile(r"[A-Za-z0-9_./:@+-]+")


def fields(**values: Any) -> dict[str, Any]:
    """Return the `extra` argument of a logging call. A field whose value is None is left out."""
    return {_ATTRIBUTE: {name: value for name, value in values.items() if value is not None}}


def configure(level: str, log_format: str) -> None:
    """Send the records of all loggers to stderr from `level` on, such as "info", in `log_format`, "text" or "json"."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def ready_line(message: str, log_format: str) -> str:
    """Return the line for stdout that announces that the operator is ready, as JSON where logs are JSON."""
    if log_format != "json":
        return message
    return JsonFormatter().format(
        logging.makeLogRecord({"name": "dljob_operator", "levelname": "INFO", "msg": message})
    )


class TextFormatter(logging.Formatter):
    """Formats a record as `2026-01-02 03:04:05,678 INFO    message key=value key="two words"`."""

    def format(self, record: logging.LogRecord) -> str:
        parts = [self.formatTime(record), f"{record.levelname:<7}", _text_message(record.getMessage())]
        parts += [f"{name}={_text_value(value)}" for name, value in _fields(self, record).items()]
        return " ".join(parts)


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object with `time`, `level`, `logger`, `message` and the record's fields."""

    def format(self, record: logging.LogRecord) -> str:
        own = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        others = {name: value for name, value in _fields(self, record).items() if name not in own}
        return json.dumps({**own, **others}, separators=(",", ":"), default=str)


def _fields(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, Any]:
    values = {name: _rounded(value) for name, value in getattr(record, _ATTRIBUTE, {}).items()}
    if record.exc_info:
        values["exception"] = formatter.formatException(record.exc_info)
    if record.stack_info:
        values["stack"] = formatter.formatStack(record.stack_info)
    return values


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


def _text_message(message: str) -> str:
    """Messages of other libraries may hold any text: one that could be read as fields is quoted as a whole."""
    ambiguous = not message or "=" in message or message.startswith('"')
    return _quoted(message) if ambiguous else _escaped(message, "")


def _text_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if _BARE.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    """Return `text` as a JSON string, in which printable characters of all scripts stay as they are."""
    return f'"{_escaped(text, chr(34) + chr(92))}"'


def _escaped(text: str, special: str) -> str:
    """Replace the characters in `special`, and those that are not printable, by their JSON escapes.

    `isprintable` is false for line separators, control and format characters (such as those that reverse the direction
    of text) and lone surrogates, which could not be encoded.
    """
    return "".join(char if char.isprintable() and char not in special else json.dumps(char)[1:-1] for char in text)
