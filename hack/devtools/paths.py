"""Where the repository is, and its files."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def known_files(*patterns: str, root: Path = ROOT) -> list[str]:
    """The files that git tracks or would add, of these patterns if there are some, relative to ``root`` and sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    # a deleted file is still listed until the next commit
    found = {name for name in listed.split("\0") if name and ((root / name).is_file() or (root / name).is_symlink())}
    return sorted(found)
