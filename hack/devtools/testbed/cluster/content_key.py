"""Cache keys, which depend on the content of the inputs only, never on time or location."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

LENGTH = 16


def content_key(*parts: str, trees: Iterable[Path] = ()) -> str:
    """16 hex digits, hashed from the strings and from the files of each tree (relative name, executable bit, content).

    A tree may be a single file. The order of the parts matters, the order of the files on disk does not.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part.encode())}:{part}\n".encode())
    for tree in trees:
        files = [tree] if tree.is_file() else sorted(p for p in tree.rglob("*") if p.is_file())
        for file in files:
            name = file.name if file == tree else file.relative_to(tree).as_posix()
            if "__pycache__" in file.parts:
                continue
            data = file.read_bytes()
            executable = bool(file.stat().st_mode & 0o100)
            digest.update(f"{tree.name}/{name} {executable} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()[:LENGTH]
