"""`dljob-operator convert`: files, output, report and exit code."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml

from dljob_operator import cli, convert

ROOT = Path(__file__).resolve().parents[3]
LOSSY = str(ROOT / "tests/manifests/tf_job.yaml")
WHOLE = str(ROOT / "examples/pytorch-digits.yaml")


def run(to: str, *files: str) -> tuple[int, list[dict[str, object]], list[str]]:
    out, errors = io.StringIO(), io.StringIO()
    code = convert.convert_files(files, to, out, errors)
    return code, list(yaml.safe_load_all(out.getvalue())), errors.getvalue().splitlines()


def test_nothing_is_lost() -> None:
    code, (made,), report = run("dljob", WHOLE)
    assert (code, made["kind"], report) == (0, "DLJob", [])


def test_something_is_lost() -> None:
    code, (made,), report = run("kubeflow.org/v1", LOSSY)
    assert (code, made["kind"]) == (1, "TFJob")
    assert report[0].startswith(f"{LOSSY}: TfJob default-servers: lost: spec.replicaSpecs[2]: PS replicas without a")


def test_a_job_that_is_not_converted_is_not_printed() -> None:
    code, made, report = run("trainjob", LOSSY)
    assert (code, made) == (1, [])
    assert report == [
        f"{LOSSY}: TfJob default-servers: not converted: kind: Kubeflow Trainer v2 has no runtime for tensorflow: it has "
        "some for pytorch, jax, xgboost"
    ]


def test_other_objects_stay(tmp_path: Path) -> None:
    text = "first line\nsecond line\n"
    documents = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": text}}, None]
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([*documents, yaml.safe_load(Path(WHOLE).read_text())]))
    code, made, report = run("dljob", str(file))
    assert (code, [one["kind"] for one in made]) == (0, ["ConfigMap", "DLJob"])
    assert made[0] == documents[0]
    assert report == [f"{file}: ConfigMap a: no job: unchanged"]


@pytest.mark.parametrize("text", ["1e-4", "1e3", "08", "0o17", "5e-5", "-1e5", "+1", ".5e1", "1_0", "y", "N", "true"])
def test_a_string_that_kubectl_would_read_as_something_else_is_quoted(tmp_path: Path, text: str) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{x: '{text}'}}\n")
    out = io.StringIO()
    convert.convert_files([str(file)], "dljob", out, io.StringIO())
    assert f"x: '{text}'" in out.getvalue()


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00+01:00"),
        ("5", 5),
        ("-7", -7),
        ("0x1f", 31),
        ("0", 0),
        ("1.5", 1.5),
        ("1e-4", 0.0001),
        (".5", 0.5),
        ("--lr", "--lr"),
        ("1.2.3", "1.2.3"),
        ("yes", True),
        ("~", None),
    ],
)
def test_a_plain_scalar_is_what_kubectl_reads(tmp_path: Path, plain: str, value: object) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(f"apiVersion: v1\nkind: Other\nmetadata: {{name: a}}\ndata: {{x: {plain}}}\n")
    _, (made,), _ = run("dljob", str(file))
    assert made["data"] == {"x": value}


def test_a_list_of_kubectl(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(yaml.safe_dump({"kind": "List", "items": [yaml.safe_load(Path(WHOLE).read_text())]}))
    assert [one["kind"] for one in run("dljob", str(file))[1]] == ["DLJob"]


def test_no_anchors() -> None:
    out = io.StringIO()
    convert.convert_files([WHOLE], "kubeflow.org/v1", out, io.StringIO())
    assert "&" not in out.getvalue()


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(Path(WHOLE).read_text()))
    assert cli.main(["convert", "--to", "dljob", "-"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["kind"] == "DLJob"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "while parsing"),
        ("- 1", "document 1 is no object: it needs apiVersion, kind and metadata"),
        (None, "No such"),
    ],
)
def test_a_file_that_is_no_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, message: str
) -> None:
    file = tmp_path / "file.yaml"
    if content is not None:
        file.write_text(content)
    assert cli.main(["convert", "--to", "dljob", str(file)]) == 1
    error = capsys.readouterr().err
    assert f"dljob-operator: {file}: " in error
    assert message in error


def test_an_unknown_target(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["convert", "--to", "v2", WHOLE])
    assert caught.value.code == 2
    assert "'kubeflow.org/v1', 'dljob', 'trainjob'" in capsys.readouterr().err
