"""The documentation site: complete, searchable, and without any request to another host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from devtools.build import site
from devtools.paths import ROOT

# of the parser, with a version of Sphinx that it supports
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

REPOSITORY = site.REPOSITORY
FOREIGN = re.compile(r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*\"")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    assert site.main([str(into)]) == 0, "Sphinx complains, for example of a link"
    return into


def test_every_document_is_a_page(built: Path) -> None:
    documents = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "client" / "README.md"]
    pages = {path.relative_to(ROOT).with_suffix(".html") for path in documents if path != ROOT / site.TOP}
    assert {page for page in pages if not (built / page).is_file()} == set()
    assert "migration" in (built / "index.html").read_text()


def test_no_page_asks_another_host(built: Path) -> None:
    found = [(page.name, FOREIGN.findall(page.read_text())) for page in built.rglob("*.html")]
    assert [one for one in found if one[1]] == []


def test_the_search_knows_the_fields(built: Path) -> None:
    text = (built / "searchindex.js").read_text()
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    names = {index["docnames"][number] for number in index["terms"]["restartswithin"]}
    assert "docs/semantics/restarts" in names


def test_the_traps_of_libraries_are_in_it(built: Path) -> None:
    text = (built / "findings" / "README.html").read_text()
    assert [one.stem for one in (ROOT / "findings").glob("*.sh") if one.stem not in text] == []


@pytest.mark.parametrize(
    ("name", "link", "expected"),
    [
        ("docs/a.md", "[x](b.md#c)", "[x](b.md#c)"),
        ("docs/a.md", "[x](../README.md)", "[x](../README.md)"),
        ("docs/a.md", "[x](#c)", "[x](#c)"),
        ("docs/a.md", "[x](https://example.com/b.md)", "[x](https://example.com/b.md)"),
        ("docs/a.md", "[x](../examples/job.yaml)", f"[x]({REPOSITORY}/blob/main/examples/job.yaml)"),
        ("README.md", f"[x]({REPOSITORY}/blob/main/docs/b.md#c)", "[x](docs/b.md#c)"),
        ("README.md", f"![x]({REPOSITORY}/raw/main/docs/b.svg)", "![x](docs/b.svg)"),
        ("docs/site/index.md", "[x](../b.md)", "[x](docs/b.md)"),
        ("docs/site/index.md", "Start <../../README>\n../b", "Start <README>\ndocs/b"),
    ],
)
def test_links(name: str, link: str, expected: str) -> None:
    assert site.page(name, link, ["README.md", "docs/b.md", "docs/b.svg"]) == expected
