"""The base of the filters that are hooks."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class Named(HookFilter, name="named", needs=("job", "spec"), hook=lambda cluster: {"A": cluster["job"]}):
    """A hook that returns a mapping."""


class Several(HookFilter, name="several", needs=(), hook=lambda cluster: iter(["a", "b"])):
    """A hook that returns one after the other."""


def test_each_has_its_own_filter() -> None:
    assert list(Named().filters()) == ["named"]
    assert list(Several().filters()) == ["several"]


def test_a_mapping_stays_one_and_several_results_are_a_list() -> None:
    assert Named().filters()["named"]({"job": 1, "spec": {}}) == {"A": 1}
    assert Several().filters()["several"]({}) == ["a", "b"]


@pytest.mark.parametrize(
    ("cluster", "missing"), [({"spec": {}}, "job"), ({"job": 1}, "spec"), (None, "job"), (["job", "spec"], "job")]
)
def test_what_the_input_lacks_is_named(cluster: Any, missing: str) -> None:
    with pytest.raises(AnsibleFilterError, match=rf"named: the cluster lacks '{missing}'"):
        Named().filters()["named"](cluster)
