"""Keys are equal for equal content; entries of the cache are created once, by one process at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from devtools.testbed.base.cache import LENGTH, cache_entry, content_key


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def never(_: Path) -> None:
    raise AssertionError("made again")


def folder_with_a_program(partial: Path) -> None:
    partial.mkdir()
    (partial / "program").touch()


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    target = tmp_path / "new" / "tool"
    assert cache_entry(target, folder_with_a_program) == target
    assert cache_entry(target, never) == target
    assert names(target.parent) == ["tool"] and names(target) == ["program"]


def test_a_failed_or_killed_creation_leaves_no_entry(tmp_path: Path) -> None:
    def fails(partial: Path) -> None:
        partial.mkdir()
        (partial / "half").touch()
        raise KeyboardInterrupt

    target = tmp_path / "tool"
    with pytest.raises(KeyboardInterrupt):
        cache_entry(target, fails)
    assert not target.exists()
    cache_entry(target, folder_with_a_program)
    assert names(target) == ["program"]


def test_a_file_keeps_its_suffix_while_it_is_made(tmp_path: Path) -> None:
    def write(partial: Path) -> None:
        assert partial.suffix == ".tar", "mmdebstrap chooses the format by it"
        partial.touch()

    assert cache_entry(tmp_path / "root.tar", write).is_file()


def test_an_incomplete_entry_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "tool"
    target.mkdir()
    (target / "old").touch()
    cache_entry(target, folder_with_a_program, lambda found: (found / "program").exists())
    assert names(target) == ["program"]


def test_a_second_process_waits_and_uses_what_the_first_one_made(tmp_path: Path) -> None:
    """Two clusters that compiled the same program at once removed each other's files."""
    target, second = tmp_path / "tool", []

    def make(partial: Path) -> None:
        folder_with_a_program(partial)
        second.append(threading.Thread(target=cache_entry, args=(target, lambda _: made_twice.set()), daemon=True))
        second[0].start()
        second[0].join(0.3)
        assert second[0].is_alive(), "it does not wait"

    made_twice = threading.Event()
    cache_entry(target, make)
    second[0].join(10)
    assert not second[0].is_alive() and not made_twice.is_set()
    assert names(target) == ["program"]


# ---- keys


def tree(root: Path, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name).write_text(text)
    return root


def test_depends_on_content_not_on_place(tmp_path: Path) -> None:
    first = tree(tmp_path / "one" / "t", a="1", b="2")
    second = tree(tmp_path / "two" / "t", b="2", a="1")
    assert content_key("x", trees=[first]) == content_key("x", trees=[second])
    assert len(content_key("x")) == LENGTH


def test_every_change_changes_it(tmp_path: Path) -> None:
    root = tree(tmp_path / "t", a="1", b="2")
    keys = [content_key("x", trees=[root])]
    (root / "a").write_text("3")
    keys.append(content_key("x", trees=[root]))
    (root / "a").rename(root / "c")
    keys.append(content_key("x", trees=[root]))
    (root / "c").chmod(0o755)
    keys.append(content_key("x", trees=[root]))
    keys.append(content_key("y", trees=[root]))
    assert len(set(keys)) == len(keys)


def test_parts_do_not_run_together() -> None:
    assert content_key("ab", "c") != content_key("a", "bc")


def test_content_does_not_pass_for_a_name(tmp_path: Path) -> None:
    one = tree(tmp_path / "1" / "t", a="x", b="y")
    other = tree(tmp_path / "2" / "t", a="x" + "t/b False 1\ny")
    assert content_key(trees=[one]) != content_key(trees=[other])


def test_bytecode_does_not_count(tmp_path: Path) -> None:
    root = tree(tmp_path / "t", a="1")
    before = content_key(trees=[root])
    tree(root / "__pycache__", b="2")
    assert content_key(trees=[root]) == before
