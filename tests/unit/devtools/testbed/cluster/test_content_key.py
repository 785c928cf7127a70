"""Keys are equal for equal content, and differ otherwise."""

from pathlib import Path

from devtools.testbed.cluster.content_key import LENGTH, content_key


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
