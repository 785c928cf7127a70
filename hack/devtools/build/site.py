"""The documentation site: a page for each document of the repository, with Sphinx and without network.

`python -m devtools.build.site [FOLDER]` writes it to FOLDER, by default `.build/site`.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from sphinx.cmd.build import build_main

from devtools.paths import ROOT, known_files

SETTINGS = "docs/site"
FINDINGS = "findings/README.md"
REPOSITORY = "https://github.com/dljob/dljob-operator"
DOCUMENTS = (
    "docs/*.md", "docs/*.svg", "docs/*.png", "docs/site/conf.py", "VERSION",
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md",
    "benchmarks/*.md", "client/README.md", "examples/README.md", FINDINGS, "hack/*.md",
    "changelogs/README.md", "molecule/README.md", "plugins/README.md", "roles/README.md", "tests/README.md",
)  # fmt: skip
"""Patterns of git, whose `*` matches `/` too."""
INDEXES = {
    "docs/semantics/README.md": "docs/semantics/",
    "docs/reference/README.md": "docs/reference/",
    "benchmarks/README.md": "benchmarks/",
    "CONTRIBUTING.md": "",
}
"""Pages and the folders of the pages that are below them, where no other page is above those."""
TOP = "docs/site/index.md"
FIRST = "index.md"
"""The first page, and its place in the site."""
_ENTRY = re.compile(r"<?(?P<path>(?:\.\./)+[\w/.-]+)>?$", re.MULTILINE)
_LINK = re.compile(r"(?P<head>\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?P<end>\))")
_ADDRESS = re.compile(rf"{re.escape(REPOSITORY)}/(?:blob|raw|tree)/main/")


def main(argv: Sequence[str] | None = None) -> int:
    """Build the site; 0 if Sphinx has nothing to complain of."""
    given = list(sys.argv[1:] if argv is None else argv)
    into = Path(given[0]) if given else ROOT / ".build" / "site"
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources"
        collect(sources)
        options = ["-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", str(sources / SETTINGS)]
        found = build_main([*options, "-d", str(Path(folder) / "parsed"), str(sources), str(into)])
    if not found:
        print(f"wrote {into / 'index.html'}")
    return found


def collect(into: Path) -> None:
    """Copy the documents, with links as the site has them."""
    names = known_files(*DOCUMENTS)
    below = contents([name for name in names if name.endswith(".md")], (ROOT / TOP).read_text(encoding="utf-8"))
    for name in names:
        to = into / (FIRST if name == TOP else name)
        to.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            text = page(name, (ROOT / name).read_text(encoding="utf-8"), names)
            more = traps() if name == FINDINGS else tree(name, below.get(name, ()))
            to.write_text(text + more, encoding="utf-8")
        else:
            shutil.copy(ROOT / name, to)


def page(name: str, text: str, documents: Collection[str]) -> str:
    """The text of a document with links to ``documents`` of the site, and to the repository for other files.

    A document that other sites show too has addresses of the repository in place of paths.
    """

    def link(found: re.Match[str]) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        if ":" in target and not _ADDRESS.match(target):
            return found[0]
        path, is_address = _ADDRESS.subn("", target)
        if not is_address:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if path in documents:
            return f"{found['head']}{_from(name, path)}{anchor}{found['end']}"
        return f"{found['head']}{REPOSITORY}/blob/main/{path}{anchor}{found['end']}"

    text = _LINK.sub(link, text)
    return _ENTRY.sub(lambda found: found[0].replace(found["path"], _target(found)), text) if name == TOP else text


def _from(name: str, path: str) -> str:
    """The path of a document for links in the page of the document ``name``."""
    return posixpath.relpath(path, "." if name == TOP else posixpath.dirname(name) or ".")


def _target(entry: re.Match[str]) -> str:
    """The document of an entry of the first page, without its suffix."""
    return posixpath.normpath(f"{SETTINGS}/{entry['path']}")


def contents(pages: Sequence[str], top: str) -> dict[str, list[str]]:
    """The pages below each of INDEXES; ``top`` is the text of the first page, which has the others."""
    listed = {TOP, *(f"{_target(found)}.md" for found in _ENTRY.finditer(top))}
    below: dict[str, list[str]] = {}
    for name in pages:
        if name not in listed:
            index = next(index for index, folder in INDEXES.items() if name.startswith(folder))
            below.setdefault(index, []).append(name)
    return below


def tree(name: str, below: Sequence[str]) -> str:
    """The directive for the pages below a page."""
    if not below:
        return ""
    paths = [_from(name, path).removesuffix(".md") for path in below]
    return "\n".join(["", "```{toctree}", ":hidden:", "", *paths, "```", ""])


def traps() -> str:
    """The heads of the scripts of the findings, a section each."""
    sections = []
    for script in sorted((ROOT / "findings").glob("*.sh")):
        lines = script.read_text(encoding="utf-8").splitlines()[1:]
        end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
        head = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:end])
        sections.append(f"\n## {script.stem}\n\n```text\n{head}\n```\n")
    return "".join(sections)


if __name__ == "__main__":
    sys.exit(main())
