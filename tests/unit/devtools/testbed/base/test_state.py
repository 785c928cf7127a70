"""The recorded state: complete, and an error if it is damaged."""

import json
from pathlib import Path

import pytest
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.process import ProcessId
from devtools.testbed.base.state import State, StateFile, from_json, to_json

FULL = State(
    name="dljob",
    engine="own",
    docker_host="unix:///run/x/docker.sock",
    supervisor=ProcessId(12, 3456, "boot"),
    block="172.30.100.0/22",
    node_image="kindest/node:x",
    creation="done",
    slot=0,
    registry_port=5001,
    kwok=ProcessId(13, 4567, "boot"),
    kwok_nodes=7,
)


@pytest.mark.parametrize("state", [State(), FULL])
def test_reads_back_what_was_written(tmp_path: Path, state: State) -> None:
    file = StateFile(tmp_path)
    file.save(state)
    assert StateFile(tmp_path).load() == state


def test_no_file_is_an_empty_state(tmp_path: Path) -> None:
    assert StateFile(tmp_path).load() == State()


def test_removed_file_is_an_empty_state(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    file.save(FULL)
    file.remove()
    file.remove()
    assert file.load() == State()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": 0}',
        '{"format": 1, "surprise": 1}',
        '{"format": 1, "kwok": {"pid": 1}}',
    ],
)
def test_damaged_file_is_named_with_the_fix(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(ClusterError) as raised:
        StateFile(tmp_path).load()
    assert str(tmp_path / "state.json") in raised.value.problem
    assert f"rm {tmp_path / 'state.json'}" in raised.value.fix


def test_a_save_leaves_no_second_file(tmp_path: Path) -> None:
    StateFile(tmp_path).save(FULL)
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]


def test_missing_fields_have_their_defaults() -> None:
    assert from_json(json.dumps({"format": 1, "name": "a"})) == State(name="a")


def test_replace_changes_only_what_is_named() -> None:
    changed = FULL.replace(kwok=None)
    assert changed.kwok is None
    assert changed.replace(kwok=FULL.kwok) == FULL
    assert from_json(to_json(changed)) == changed
