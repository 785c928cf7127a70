"""`dljob history`, with the operator's own writes and, in place of the copies of a built package, its own queries."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from devtools.build.collection import wheel
from dljob import cli, history
from support.history import stamp

from dljob_operator.history import queries

from .conftest import Cluster
from .history_jobs import NOW
from .test_cli import run

CLIENT = Path(__file__).resolve().parents[3] / "client"


def lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[list[str]]:
    code, out, err = run(capsys, "history", *words)
    assert (code, err) == (0, "")
    return [line.split() for line in out.splitlines()]


def names(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    code, out, _ = run(capsys, "history", "-o", "json", *words)
    assert code == 0
    return [job["name"] for job in json.loads(out)]


def test_the_newest_jobs_of_the_contexts_namespace(
    url: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    found = lines(capsys)
    assert found[0] == ["NAME", "KIND", "STATE", "ENDED", "RUNNING", "RESTARTS", "GPU-H", "USER", "REASON"]
    assert re.fullmatch(r"\d+m(\d+s)?", found[1].pop(3)), "since the tests were loaded"
    assert found[1] == ["new", "PyTorchJob", "Succeeded", "ago", "60m", "0", "2.00", "ada", "JobSucceeded"]
    assert [line[0] for line in found[2:4]] == ["failed", "october-2"]
    assert "bob\\x1b[2J" in found[2], "what a tenant wrote does nothing to the terminal"


def test_the_filters(url: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "-A", "--limit", "3") == ["new", "failed", "elsewhere"]
    assert names(capsys, "-n", "other") == ["elsewhere"]
    assert names(capsys, "--since", "1h") == ["new"]
    assert names(capsys, "--since", "7d", "-A") == ["new", "failed", "elsewhere"]
    assert names(capsys, "--user", "bob", "-A") == ["october-2"]
    assert names(capsys, "--state", "Failed") == ["failed", "october-2"]
    assert names(capsys, "--kind", "pytorchjob", "--cluster", "lab", "--limit", "1") == ["new"]
    assert run(capsys, "history", "--kind", "TFJob") == (0, "", "The history has no such jobs.\n")


def test_wide_has_the_whole_link_to_the_logs(url: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    head, first, *_ = lines(capsys, "-o", "wide", "-A")
    assert head[0] == "NAMESPACE" and head[-2:] == ["MESSAGE", "LOGS"]
    assert first[-1] == "https://logs.example.com/a/rather/long/address/of/the/logs?uid=uid-new"
    (job,) = json.loads(run(capsys, "history", "-o", "json", "--limit", "1")[1])
    assert job["logLink"] == first[-1]
    assert job["ended"] == stamp(NOW - timedelta(minutes=5))
    assert job["usage"]["resourceSeconds"]["cpu"] == 3600


def test_the_report_of_a_month(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It needs no cluster."""
    found = lines(capsys, "report", "--month", "2026-10")
    assert found == [
        ["NAMESPACE", "USER", "JOBS", "SUCCEEDED", "FAILED", "GPU-H", "CPU-H", "GIB-H", "RESTARTS", "PREEMPTIONS"],
        ["team", "ada", "1", "1", "0", "2.00", "1.00", "0.50", "0", "0"],
        ["team", "bob", "1", "0", "1", "2.00", "1.00", "0.50", "0", "0"],
    ]
    assert lines(capsys, "report", "--month=2026-10", "--by", "kind")[1][:2] == ["PyTorchJob", "2"]
    assert len(lines(capsys, "report", "--month=2026-10", "--user", "bob")) == 2
    (row,) = json.loads(run(capsys, "history", "report", "--by=cluster", "--month=2026-10", "-o", "json")[1])
    assert row == {
        "cluster": "lab", "jobs": 2, "succeeded": 1, "failed": 1, "restarts": 0, "preemptions": 0, "gpuHours": 4.0,
        "cpuHours": 2.0, "memoryGibHours": 1.0,
    }  # fmt: skip
    assert run(capsys, "history", "report", "--month", "2020-02")[1:] == ("", "The history has nothing of 2020-02.\n")


def test_the_report_of_this_month_is_the_default(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "report") == lines(capsys, "report", "--month", f"{NOW:%Y-%m}")


def test_prices_add_the_cost(url: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    prices = {"nvidia.com/gpu": "2.5", "cpu": "0.5", "currency": "EUR"}
    cluster.fake.add(("team", "configmaps"), {"metadata": {"name": "prices", "namespace": "team"}, "data": prices})
    found = lines(capsys, "report", "--month=2026-10", "--prices", "prices")
    assert (found[0][-2:], [line[-1] for line in found[1:]]) == (["COST", "(EUR)"], ["5.50", "5.50"])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--database", "sqlite:////none/h.db", "-A"], 1, "error: there is no database at /none/h.db\n"),
        (["--database", "mysql://u:geheim@h/d", "-A"], 1, "the history's database must be sqlite or postgresql"),
        (["--database", "postgresql://u:geheim@127.0.0.1:1/d", "-A"], 1, "postgresql+psycopg://u:***@127.0.0.1:1/d: "),
        (["--month", "2026-13", "report"], 2, "'2026-13' is no month: write 2026-11"),
        (["--by", "node", "report"], 2, "'node' is no key: write some of namespace, user, queue, kind, cluster"),
        (["--limit", "0"], 2, "'0' is no number from 1 to 100000"),
    ],
)
def test_what_cannot_be_shown(
    url: str, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    try:
        found, _, err = run(capsys, "history", *words)
    except SystemExit as e:
        found, err = int(str(e.code)), capsys.readouterr().err
    assert found == code
    assert said in err and "Traceback" not in err and "geheim" not in err


def test_without_a_database_it_says_how_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DLJOB_HISTORY_DATABASE", raising=False)
    code, _, err = run(capsys, "history", "-A")
    assert (code, "--database, or with DLJOB_HISTORY_DATABASE" in err) == (1, True)


def test_a_source_tree_without_the_operator_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, history.QUERIES, None)
    assert cli.main(["history", "--database", "sqlite:////h.db"]) == cli.ERROR
    assert "pip install './client[history]'" in capsys.readouterr().err


def test_the_keys_are_those_of_the_queries() -> None:
    assert cli.HISTORY_GROUPS == history.GROUPS
    assert set(history.GROUPS) == set(queries.GROUPS)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    with zipfile.ZipFile(wheel.build(tmp_path_factory.mktemp("wheel"), CLIENT)) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("missing", ["", "sqlalchemy"])
def test_the_built_package_has_the_queries_and_names_the_extra(
    built: Path, url: str, tmp_path: Path, missing: str
) -> None:
    """Beside the libraries that are installed here, but not the operator."""
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({[missing] if missing else []} + ['dljob_operator']))\n"
        f"sys.path.insert(0, {str(built)!r})\n"
        "from dljob import cli\n"
        "sys.exit(cli.main(['history', 'report', '--month=2026-10', '-o', 'json']))"
    )
    environ = {"PATH": os.environ["PATH"], "DLJOB_HISTORY_DATABASE": url}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    if missing:
        assert (done.returncode, "pip install 'dljob[history]'" in done.stderr) == (1, True), done.stderr
    else:
        assert done.stderr == ""
        assert sum(row["jobs"] for row in json.loads(done.stdout)) == 2
