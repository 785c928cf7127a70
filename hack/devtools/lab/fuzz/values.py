"""Values that break programs: strings, numbers, names, quantities, durations. Tables, and a choice from them. Pure."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

STRINGS: tuple[str, ...] = (
    "", " ", "\t", "\n", "a\nb: c", "\r\n", "\x00", "\x1b[31mred\x1b[0m", "\x7f", "\u2028", "\ufeff", "\u202etxt",
    "é", "日本語", "🔥" * 20, "\U0001f468\u200d\U0001f469", "e\u0301", "ß", "İ", "{{ 1 + 1 }}",
    "{{ lookup('pipe', 'id') }}", "{% for x in range(10**9) %}x{% endfor %}", "{% raw %}", "{#", "{{", "}}",
    "{{ ''.__class__.__mro__ }}", "{{ undefined_variable }}", "{{ lookup('env', 'HOME') }}", "{%- endraw -%}",
    "!unsafe '{{ 1 }}'", "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  00", "!!python/object/apply:os.system ['id']",
    "!!binary x", "&anchor", "*anchor", "<<: *x", "---", "...", "- a", "? x", "| ", "> ", "@", "`", "%",
    "key: value # comment", "{index}", "{host} {rank}", "{0}", "{a.b}", "{0.__class__}", "{", "}", "%s%s%n", "$(id)",
    "`id`", "$((1))", "$HOME", "$(DLJOB_SHARED_MX_CONFIG)", "; rm -rf /", "' OR 1=1", "../../etc/passwd",
    "file:///etc/passwd", "C:\\x", "null", "true", "yes", "no", "~", "0x10", "1e3", "-0", ".inf", ".nan",
    "2026-01-01", "12:30:45", "0o17", "1_000", "None", "NaN", "Infinity", "undefined", "[]", "{}", "[1,2", '{"a":1}',
    "<a>", "&lt;", "\\", "\\u0000", '"', "'", "a" * 63, "a" * 64, "a" * 253, "a" * 254, "A" * 1024, "9" * 400,
    "-" * 63, ".", "..", "-a", "a-", "a..b", "UPPER", "a_b",
)  # fmt: skip
NUMBERS: tuple[float, ...] = (
    -1, 0, 1, 2, 51, 127, 128, 255, 256, 65535, 65536, 99999, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32,
    2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 0.5, -0.0, 1e-9, 1e308, -1e308,
)  # fmt: skip
NAMES: tuple[str, ...] = (
    "", "a", "0", "-", "a-", "-a", "A", "a_b", "a.b", "a..b", ".", "..", "a/b", "a%2fb", "a b", "é", "日本", "a\n",
    "{{ x }}", "a" * 62, "a" * 63, "a" * 64, "a" * 252, "a" * 253, "a" * 254, "0" * 63, "1abc", "a." * 126 + "a",
    "kube-root-ca.crt", "xn--bcher-kva", "null", "true", "1e3",
)  # fmt: skip
QUANTITIES: tuple[Any, ...] = (
    "0", "-1", "1", 1, 0.5, "1.5", "100m", "1e3", "1E3", "1e400", "1Ki", "1ki", "1KiB", "9" * 40, "-0", "+1", ".5",
    "5.", "m", "", " 1", "1 ", "0x1", "1Ei", "9223372036854775807", "9223372036854775808", "1n", "1u", "50%",
    "{{ 1 }}", True, None, [], {},
)  # fmt: skip
PERCENTAGES: tuple[Any, ...] = ("0%", "50%", "100%", "101%", "-1%", "1.5%", "%", "50 %", "1e3%", 50, "50")
DURATIONS: tuple[str, ...] = (
    "0", "0s", "1ns", "0.0000001s", "1us", "1ms", "-1s", "+1s", "1h" * 1000, "9" * 300 + "h", "1e9h", "inf", "nan",
    "NaN", "", " ", "1", "1d", "1h30m", "1h 30m", "1s1", ".s", ".5s", "1.s", "µs", "1µs", "{{ 1 }}s", "1s\n",
    "1" + "0" * 400 + "ns", "1" * 20_000,
)  # fmt: skip
OF_OTHER_TYPES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    "",
    "text",
    [],
    {},
    [None],
    [[]],
    {"a": None},
    {"": ""},
    [{}],
)


def pick(rng: random.Random, choices: Sequence[Any]) -> Any:
    """A copy of one of ``choices``, which a later mutation may change."""
    return copied(rng.choice(choices))


def copied(value: Any) -> Any:
    """A copy of a value of JSON. copy.deepcopy takes no more than about 300 levels."""
    return json.loads(json.dumps(value))


def text(rng: random.Random) -> str:
    """A string of the table, or one of random characters, control characters among them."""
    if rng.random() < 0.8:
        return rng.choice(STRINGS)
    return "".join(chr(_character(rng)) for _ in range(rng.randrange(1, 40)))


def _character(rng: random.Random) -> int:
    return rng.choice(
        (rng.randrange(0x20), rng.randrange(0x20, 0x7F), rng.randrange(0x80, 0xD800), rng.randrange(0x10000, 0x11000))
    )


def nested(levels: int, rng: random.Random) -> Any:
    """Mappings and lists in each other, ``levels`` deep."""
    value: Any = rng.choice(("end", 1, None, {}))
    for level in range(levels):
        value = [value] if rng.random() < 0.3 else {f"k{level % 7}": value}
    return value


LEVELS = (3, 20, 60, 75, 85, 90, 95, 98, 99, 100, 101, 105, 130, 200, 400, 700)
"""Below and above the 100 levels that the operator reads. Python's encoder has a limit of about a thousand, and the API
server has one of ten thousand."""
