"""ansible-operator's command lines and input directories: what the bridge supports and what the real ansible-runner must do."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.ansible_operator_bridge import command
from dljob_operator.ansible_operator_bridge.command import Command, JobNestedTooDeeply, UnsupportedRun
from dljob_operator.engine.cache import nesting

CWD = Path("/opt/ansible")
ROLE = [
    "run",
    "/tmp/x",
    "--rotate-artifacts",
    "20",
    "--role",
    "foo",
    "--roles-path",
    "/abs/roles/",
    "--hosts",
    "localhost",
    "-i",
    "12",
]
PLAYBOOK = ["run", "/tmp/x", "--rotate-artifacts", "7", "-p", "/abs/play.yml", "-i", "12"]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (ROLE, Command(Path("/tmp/x"), "12", Path("/abs/roles/foo"), 20, facts=True)),
        ([*ROLE, "-vv"], Command(Path("/tmp/x"), "12", Path("/abs/roles/foo"), 20, facts=True, verbosity=2)),
        ([*ROLE, "-vv", "--role-skip-facts"], Command(Path("/tmp/x"), "12", Path("/abs/roles/foo"), 20, verbosity=2)),
        (PLAYBOOK, Command(Path("/tmp/x"), "12", Path("/abs/play.yml"), 7)),
        (
            ["run", "rel", "--role", "foo", "--roles-path", "roles", "-i", "a"],
            Command(CWD / "rel", "a", CWD / "roles/foo", facts=True),
        ),
    ],
)
def test_command_lines_of_ansible_operator_are_parsed(argv: list[str], expected: Command) -> None:
    assert command.parse(argv, CWD) == expected


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--version"],
        ["start", *ROLE[1:]],
        [*ROLE, "--inventory", "x"],
        [*ROLE, "--hosts", "all"],
        [*PLAYBOOK, "--role", "foo"],
        ["run", "/tmp/x", "-i", "12"],
        ["run", "/tmp/x", "-p", "a"],
        ["run", "/tmp/x", "-p", "a", "-i", "../up"],
        [*ROLE, "--rotate", "3"],
    ],
)
def test_other_command_lines_are_unsupported(argv: list[str]) -> None:
    with pytest.raises(UnsupportedRun):
        command.parse(argv, CWD)


JOB: dict[str, Any] = {
    "apiVersion": "g.example.com/v1",
    "kind": "XJob",
    "metadata": {"name": "a", "uid": "u"},
    "spec": {},
}


def write(folder: Path, **files: Any) -> Command:
    (folder / "env").mkdir(exist_ok=True)
    given = {"extravars": {"_g_example_com_xjob": JOB, "_g_example_com_xjob_spec": {}}, **files}
    for name, content in given.items():
        (folder / "env" / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return Command(folder, "12", Path("/role"))


def test_the_object_is_found_by_its_variable(tmp_path: Path) -> None:
    found = command.read(write(tmp_path))
    assert (found.name, found.resource, found.socket) == ("_g_example_com_xjob", JOB, "")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"cmdline": "-e a=b"}, "--ansible-args"),
        ({"envvars": {"KUBECONFIG": "/x", "OTHER": "y"}}, "sets OTHER"),
        ({"settings": {"runner_http_url": "http://example.com"}}, "no unix socket"),
        ({"extravars": {"a": 1}}, "contains no object"),
        ({"extravars": "{"}, "extravars"),
        ({"extravars": "[]"}, "no mapping"),
    ],
)
def test_an_input_with_other_settings_is_unsupported(tmp_path: Path, files: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedRun, match=reason):
        command.read(write(tmp_path, **files))


def nested(levels: int) -> str:
    """The extra variables of a job with so many levels, its own counted, as ansible-operator writes them: it wraps strings."""
    text = json.dumps({"_g_example_com_xjob": {**JOB, "spec": "HERE"}, "_g_example_com_xjob_spec": {}})
    inner = levels - 2  # without the job itself, and the mapping with the string
    return text.replace('"HERE"', '{"a":' * inner + '{"a":{"__ansible_unsafe":"x"}}' + "}" * inner)


def test_the_deepest_permitted_object_is_run(tmp_path: Path) -> None:
    assert command.read(write(tmp_path, extravars=nested(nesting.LIMIT + 1))).resource["metadata"] == JOB["metadata"]


@pytest.mark.parametrize("levels", [nesting.LIMIT + 2, 450, 700, 1_100, 9_000])
def test_an_object_that_is_nested_too_deeply_is_not_run(tmp_path: Path, levels: int) -> None:
    """Python fails at some 500 levels without the wrappers, and at some 1,000 in its decoder."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "events"))
        settings = {"runner_http_url": str(tmp_path / "events"), "runner_http_path": "/events/1"}
        asked = write(tmp_path, extravars=nested(levels), settings=settings)
        with pytest.raises(JobNestedTooDeeply) as raised:
            command.read(asked)
    found = raised.value
    assert (found.asked, found.socket, found.path) == (asked, str(tmp_path / "events"), "/events/1")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def wrap(value: Any) -> Any:
    """`markUnsafe`, as ansible-operator does it."""
    if isinstance(value, dict):
        return {key: wrap(item) for key, item in value.items()}
    if isinstance(value, list):
        return [wrap(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


@given(VALUES)
def test_what_mark_unsafe_wraps_is_unwrapped_and_known_to_be_unsafe(value: Any) -> None:
    found = command.variables(command.Input({"x": wrap(value)}, "_job", {}, "", ""), {}, {})
    assert found.values["x"] == value
    assert ("x" in found.unsafe) == ("__ansible_unsafe" in json.dumps(wrap(value)))


def test_a_spec_cannot_set_what_is_the_operators(tmp_path: Path) -> None:
    spec = {"ansible_connection": "ssh", "dljob_batch": [], "dljob_fixed": 1, "word": "x"}
    extravars = {**spec, "_g_example_com_xjob": JOB, "_g_example_com_xjob_spec": spec, "ansible_operator_meta": {}}
    found = command.read(write(tmp_path, extravars=extravars))
    newer = {**JOB, "spec": {"word": "y"}}
    made = command.variables(found, newer, {"dljob_fixed": 1})
    assert made.unsafe == frozenset()
    assert made.values == {
        "word": "x",
        "dljob_fixed": 1,
        "ansible_operator_meta": {},
        "_g_example_com_xjob": newer,
        "_g_example_com_xjob_spec": {"word": "y"},
    }


def test_a_spec_cannot_pass_for_the_object(tmp_path: Path) -> None:
    """Keys of a spec are variables too; only that of the kind which ansible-operator runs is the object."""
    forged = {**JOB, "apiVersion": "a.example.com/v1", "metadata": {"name": "a", "uid": "of somebody else"}}
    spec = {"_a_example_com_xjob": forged, "_a_example_com_xjob_spec": {}}
    folder = tmp_path / "g.example.com" / "v1" / "XJob" / "default" / "a"
    folder.mkdir(parents=True)
    extravars = {**spec, "_g_example_com_xjob": {**JOB, "spec": spec}, "_g_example_com_xjob_spec": spec}
    found = command.read(write(folder, extravars=extravars))
    assert (found.name, found.resource["metadata"]) == ("_g_example_com_xjob", JOB["metadata"])
