"""Manifests of new jobs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.manifest_yaml import read
from dljob import cli, new
from dljob.new import FRAMEWORKS, Plan, manifest
from dljob.output import structured
from dljob.view import view

from .test_cli import run


def made(framework: str, **more: Any) -> dict[str, Any]:
    return manifest(Plan(framework, "digits", "train:1", ("python", "train.py"), **more))


@pytest.mark.parametrize(
    ("framework", "more", "replicas"),
    [
        ("pytorch", {"workers": 4}, {"Master": 1, "Worker": 3}),
        ("pytorch", {}, {"Master": 1}),
        ("xgboost", {"workers": 2}, {"Master": 1, "Worker": 1}),
        ("tensorflow", {"workers": 3}, {"Worker": 3}),
        ("tensorflow", {"workers": 3, "servers": 2}, {"PS": 2, "Worker": 3}),
        ("mxnet", {"workers": 2}, {"Scheduler": 1, "Server": 1, "Worker": 2}),
        ("mxnet", {"workers": 2, "servers": 3}, {"Scheduler": 1, "Server": 3, "Worker": 2}),
        ("jax", {"workers": 2}, {"Worker": 2}),
        ("paddle", {"workers": 2}, {"Worker": 2}),
        ("caffe2", {}, {"Worker": 1}),
        ("caffe2", {"workers": 2, "redis": "r"}, {"Worker": 2}),
        ("mpi", {"workers": 2}, {"Launcher": 1, "Worker": 2}),
    ],
)
def test_the_replicas(framework: str, more: dict[str, Any], replicas: dict[str, int]) -> None:
    seen = view(made(framework, gpus=2, cpu="1", memory="1Gi", **more))
    assert {one.type: one.desired for one in seen.replicas} == replicas
    assert seen.framework == framework
    assert "&id" not in structured(made(framework, **more), "yaml"), "a user edits the types one by one"
    workers = sum(count for name, count in replicas.items() if name in ("Worker", "Master"))
    assert (seen.requests.gpus, seen.requests.cpu) == (2 * workers, sum(replicas.values()))


def test_a_template() -> None:
    job = made("jax", gpus=1, gpu_resource="amd.com/gpu", memory="8Gi", env={"SEED": "1"}, queue="q", namespace="team")
    assert job["metadata"] == {"name": "digits", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    assert job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] == [
        {
            "name": "jax",
            "image": "train:1",
            "command": ["python", "train.py"],
            "env": [{"name": "SEED", "value": "1"}],
            "resources": {"requests": {"memory": "8Gi"}, "limits": {"memory": "8Gi", "amd.com/gpu": 1}},
        }
    ]


def test_the_program_of_an_mpijob_runs_in_its_launcher_alone() -> None:
    spec = made("mpi", workers=2, gpus=4)["spec"]
    commands = {
        name: replica["template"]["spec"]["containers"][0].get("command")
        for name, replica in spec["mpiReplicaSpecs"].items()
    }
    assert commands == {"Launcher": ["python", "train.py"], "Worker": None}
    assert spec["slotsPerWorker"] == 4


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"workers": 0}, "at least one worker"),
        ({"servers": 1}, "pytorch has no servers: only tensorflow and mxnet have"),
        ({"framework": "keras"}, "keras is no framework: write one of pytorch, tensorflow"),
        ({"redis": "r"}, "pytorch meets at no Redis server"),
        ({"framework": "caffe2", "workers": 2}, "name it with --redis"),
        ({"image": ""}, "the image is missing"),
    ],
)
def test_what_is_impossible(more: dict[str, Any], said: str) -> None:
    with pytest.raises(new.Impossible, match=said):
        manifest(Plan(**{"framework": "pytorch", "name": "a", "image": "i", **more}))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "new",
        "pytorch",
        "--image",
        "train:1",
        "--workers",
        "2",
        "--env",
        "A=b=c",
        "--",
        "python",
        "-m",
        "train",
        "--",
        "-n",
    )
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    job = yaml.safe_load(out)
    assert job["metadata"] == {"name": "pytorch"}
    (container,) = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", "train", "--", "-n"]
    assert container["env"] == [{"name": "A", "value": "b=c"}]
    assert run(capsys, "new", "jax", "--image", "i", "--servers", "1")[0] == 1
    assert run(capsys, "new", "jax", "--image", "i", "-o", "json")[1].startswith("{")
    with pytest.raises(SystemExit):
        cli.main(["new", "jax", "--image", "i", "--env", "A"])
    assert "'A' is no variable: write NAME=VALUE" in capsys.readouterr().err


def test_the_frameworks_of_the_command_line_are_all() -> None:
    from dljob.kinds import ALL

    assert cli.FRAMEWORKS == FRAMEWORKS
    assert set(FRAMEWORKS) == {kind.framework for kind in ALL if kind.framework}


TEXTS = (
    "y",
    "n",
    "on",
    "1e-3",
    "1_000",
    "08",
    "0o17",
    "12:30",
    "2024-01-15",
    "1.",
    "~",
    "",
    " a",
    "a\nb",
    "é\x1b[2J",
    "a\n\n",
)


def test_texts_stay_texts_for_whom_reads_the_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    """Also for kubectl, to which an unquoted y is a truth value, and 1e-3 a number."""
    variables = [word for text in TEXTS for word in ("--env", f"V={text}")]
    words = ("new", "jax", "--image", "i", *variables, "--", *(text for text in TEXTS))
    code, out, _ = run(capsys, *words)
    (job,) = read(out)
    (container,) = job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert (code, container["command"]) == (0, [*TEXTS])
    assert out.isascii() and "\x1b" not in out
