"""Conversion of Ansible's tagged values to built-in types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible_collections.dljob.operator.plugins.module_utils.builtin_types import to_builtin

try:
    from ansible.template import trust_as_template as marked
except ImportError:  # ansible-core 2.18, which marks untrusted values instead
    from ansible.utils.unsafe_proxy import wrap_var as marked

TEMPLATED = "{{ 6 * 7 }}"


def types_in(value: Any) -> set[type]:
    found = {type(value)}
    if isinstance(value, Mapping):
        for key, item in value.items():
            found |= types_in(key) | types_in(item)
    elif isinstance(value, list):
        for item in value:
            found |= types_in(item)
    return found


def test_tagged_values_become_plain_ones() -> None:
    tagged = DataLoader().load(f"a: [1, 2.5, true, null, 'x', {{b: '{TEMPLATED}'}}]\n", file_name="/job.yaml")
    assert type(tagged["a"][4]) is not str, "Ansible tags what it loads"
    made = to_builtin(tagged)
    assert made == {"a": [1, 2.5, True, None, "x", {"b": TEMPLATED}]}
    assert types_in(made) == {dict, list, int, float, bool, type(None), str}
    assert yaml.safe_load(yaml.safe_dump(made)) == json.loads(json.dumps(made)) == made


def test_no_tag_is_kept_and_no_template_is_evaluated() -> None:
    made = to_builtin({"x": marked(TEMPLATED)})
    assert made == {"x": TEMPLATED}
    assert type(made["x"]) is str


@pytest.mark.parametrize("value", [True, False, None, 0, 1, 1.5, "", "x", [], {}])
def test_plain_values_stay(value: Any) -> None:
    assert to_builtin(value) == value
    assert type(to_builtin(value)) is type(value)


def test_a_deep_copy() -> None:
    inner: list[int] = [1]
    made = to_builtin({"a": inner})
    made["a"].append(2)
    assert inner == [1]


def test_other_containers() -> None:
    assert to_builtin(MappingProxyType({"a": (1, 2)})) == {"a": [1, 2]}
