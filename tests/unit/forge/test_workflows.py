"""The workflows match the repository's versions, commands and files, and have minimal permissions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.images import wheels
from devtools.testbed.base.versions import DEFAULT_KUBERNETES, KUBERNETES
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")}
JOBS = [
    (f"{name}: {job}", content) for name, workflow in WORKFLOWS.items() for job, content in workflow["jobs"].items()
]
UNITS = WORKFLOWS["test"]["jobs"]["unit"]["strategy"]["matrix"]["include"]
TOOLS = ROOT / "hack" / "devtools"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def steps(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from job.get("steps", [])


def scripts() -> Iterator[str]:
    action = yaml.safe_load((ROOT / ".github/actions/setup/action.yml").read_text(encoding="utf-8"))
    yield from (step["run"] for step in action["runs"]["steps"] if "run" in step)
    for _, job in JOBS:
        yield from (step["run"] for step in steps(job) if "run" in step)


def test_units_run_with_every_python_that_is_supported() -> None:
    accepted = re.search(
        r"\((\d+), (\d+)\) <= sys\.version_info\[:2\] <= \((\d+), (\d+)\)", (ROOT / "hack/python.sh").read_text()
    )
    assert accepted
    first, last = int(accepted[2]), int(accepted[4])
    assert sorted({entry["python"] for entry in UNITS}) == [f"3.{minor}" for minor in range(first, last + 1)]


def test_units_run_with_the_ansible_core_that_each_target_pins() -> None:
    files = {name: f"requirements-{name.removeprefix('test-')}.txt" for name in ("test-oldest", "test-previous")}
    files["test-unit"] = "requirements.txt"
    for entry in UNITS:
        text = (ROOT / files[entry["target"]]).read_text(encoding="utf-8")
        (pin,) = (pin for pin in wheels.pins(text, entry["python"]) if pin.startswith("ansible-core=="))
        assert pin.startswith(f"ansible-core=={entry['ansible-core']}."), entry


def test_units_run_with_every_line_of_ansible_core_that_is_supported() -> None:
    runtime = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))
    supported = SpecifierSet(runtime["requires_ansible"])
    lines = [f"2.{minor}" for minor in range(15, 40) if f"2.{minor}.0" in supported]
    assert sorted({entry["ansible-core"] for entry in UNITS}) == lines


def test_the_three_newest_versions_of_kubernetes_are_tested() -> None:
    nightly = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8"))
    others = nightly["jobs"]["kubernetes"]["strategy"]["matrix"]["k8s"]
    newest = sorted(KUBERNETES, key=lambda version: int(version.partition(".")[2]))[-3:]
    assert [*others, DEFAULT_KUBERNETES] == newest


def test_targets_of_make_and_packages_of_python_exist() -> None:
    script = "\n".join(scripts())
    targets = {word for line in re.findall(r"^\s*make (.+)$", script, re.MULTILINE) for word in shlex.split(line)}
    targets = {word for word in targets if "=" not in word and not word.startswith("$")}
    targets |= {entry["target"] for entry in UNITS}
    assert {
        "venv",
        "lint",
        "test",
        "test-unit",
        "test-oldest",
        "test-previous",
        "bench",
        "collection",
        "bundle",
    } <= targets
    assert [t for t in sorted(targets) if not re.search(rf"^{re.escape(t)}:.* ## ", MAKEFILE, re.MULTILINE)] == []
    packages = set(re.findall(r"python -m devtools\.([\w.]+)", script))
    assert {"build.images", "build.release"} <= packages
    modules = [TOOLS / package.replace(".", "/") for package in packages]
    assert [m for m in modules if not (m / "__main__.py").is_file() and not m.with_suffix(".py").is_file()] == []


def test_the_image_that_a_release_puts_into_the_chart_is_where_it_looks_for_it() -> None:
    (line,) = [line for line in scripts() if "values.yaml" in line]
    (replaced,) = re.findall(r"s\|\^(.+)\$\|", line)
    values = (ROOT / "deploy/helm/dljob-operator/values.yaml").read_text(encoding="utf-8")
    assert values.splitlines().count(replaced) == 1


@pytest.mark.parametrize("name", WORKFLOWS)
def test_nothing_is_permitted_that_a_job_does_not_ask_for(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {}
    assert "concurrency" in workflow
    assert [job for job, content in workflow["jobs"].items() if "permissions" not in content] == []


def test_only_a_release_and_the_scan_may_write() -> None:
    writing = {name for name, job in JOBS if "write" in job["permissions"].values()}
    assert writing == {"image: image", "release: image", "release: registry", "release: pypi", "release: forge"}


def test_actions_of_others_are_pinned_by_commit() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / ".github").rglob("*.yml"))
    used = re.findall(r"uses: (\S+)@(\S+)", text)
    assert len(used) > 10
    assert {name for name, ref in used if not re.fullmatch(r"[0-9a-f]{40}", ref)} == {"pypa/gh-action-pypi-publish"}


def test_teams_own_paths_that_exist() -> None:
    lines = [line.split() for line in (ROOT / ".github/CODEOWNERS").read_text("utf-8").splitlines()]
    rules = [line for line in lines if line and line[0] != "#"]
    assert all(owner.startswith("@dljob/") for rule in rules for owner in rule[1:])
    assert [path for path, *_ in rules if path != "*" and not (ROOT / path.strip("/")).exists()] == []


def test_generated_files_are_marked_and_exist() -> None:
    lines = [line.split() for line in (ROOT / ".gitattributes").read_text("utf-8").splitlines()]
    patterns = [line[0] for line in lines if line and line[-1] == "linguist-generated"]
    assert [p for p in patterns if not any(ROOT.glob(p)) and not any(ROOT.glob(f"hack/**/{p}"))] == []
    written = {
        "crds/*.yaml",
        "watches.yaml",
        "roles/*/tasks/main.yml",
        "deploy/olm/**",
        "build/bundle.Dockerfile",
        "docs/reference/**",
        "CHANGELOG.md",
    }
    assert written <= set(patterns)
