"""What apply_job sends for a manifest, through `ansible-playbook` and beside a server that records it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.collection.environment import COLLECTIONS, environ
from support import plain_scalars
from support.scripted_server import Exchange, ScriptedServer, scripted

ROOT = Path(__file__).resolve().parents[3]
FIRST = plain_scalars.MANIFEST
SECOND = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: second, namespace: ml}\nspec: {}\n"
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Has no object, and stores none; `second` is there already, as it is applied."""

    def respond(exchange: Exchange) -> None:
        if exchange.method == "PATCH":
            exchange.answer({**exchange.body, "metadata": {**exchange.body["metadata"], "managedFields": []}})
        elif exchange.path.endswith("/second"):
            exchange.answer(yaml.safe_load(SECOND))
        else:
            exchange.answer({"kind": "Status", "code": 404, "message": "not found"}, 404)

    with scripted(respond) as listening:
        yield listening


class Playing:
    def __init__(self, server: ScriptedServer, folder: Path) -> None:
        self._folder = folder
        self._server = server
        self.output = ""
        content = {
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "current-context": "x",
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(content))

    @property
    def written(self) -> list[Exchange]:
        return [one for one in self._server.requests if one.method != "GET"]

    def play(self, *arguments: str, **more: str) -> dict[str, Any]:
        """Run a playbook with one task; return its result."""
        tasks: list[dict[str, Any]] = [
            {
                "dljob.operator.apply_job": {
                    "watches_file": str(ROOT / "watches.yaml"),
                    "manifest": "{{ manifest | default(omit) }}",
                },
                "register": "applied",
            },
            {
                "ansible.builtin.copy": {"content": "{{ applied | to_json }}", "dest": str(self._folder / "result")},
                "check_mode": False,
                "diff": False,
            },
        ]
        playbook = self._folder / "play.yml"
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": sys.executable},
            "tasks": tasks,
        }
        playbook.write_text(json.dumps([play]))
        command = ["ansible-playbook", "-i", "localhost,", "-c", "local", str(playbook), *arguments]
        env = environ(KUBECONFIG=str(self._folder / "kubeconfig"), ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS), **more)
        done = subprocess.run(command, cwd=self._folder, env=env, capture_output=True, text=True, check=False)
        self.output = done.stdout + done.stderr
        assert done.returncode == 0, self.output
        result: dict[str, Any] = json.loads((self._folder / "result").read_text())
        return result


@pytest.fixture
def playing(server: ScriptedServer, tmp_path: Path) -> Playing:
    return Playing(server, tmp_path)


def test_a_manifest_is_read_as_kubectl_reads_it(playing: Playing, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(FIRST)
    result = playing.play("-e", "manifest=job.yaml", "--diff")
    (sent,) = playing.written
    assert sent.path == "/apis/kubeflow.org/v1/namespaces/default/mxjobs/first"
    assert sent.query["fieldValidation"] == "Strict"
    assert sent.body["metadata"]["annotations"] == plain_scalars.ANNOTATIONS
    assert json.dumps(sent.body["spec"]) == plain_scalars.SPEC
    assert result["changed"]
    (job,) = result["jobs"]
    assert job == {"resource": sent.body, "role": "dljob.operator.mxnet"}
    assert (result["resource"], result["role"]) == (job["resource"], job["role"])
    assert "{{ 6 * 7 }}" in playing.output


def test_a_file_of_several_documents(playing: Playing, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"---\n{FIRST}---\n{OTHER}---\n# nothing\n---\n{SECOND}")
    result = playing.play("-e", f"manifest={file}", "--check", "--diff")
    assert [one.path.rpartition("/")[2] for one in playing.written] == ["first", "second"]
    assert {one.query["dryRun"] for one in playing.written} == {"All"}
    assert [job["role"] for job in result["jobs"]] == ["dljob.operator.mxnet", "dljob.operator.pytorch"]
    assert "resource" not in result
    assert [one["after_header"] for one in result["diff"]] == ["MXJob first", "PyTorchJob second"]
    assert [bool(one["before"]) for one in result["diff"]] == [False, True]
    warning = f"document 2 of {file}, ConfigMap other, is no job: apply it with kubectl"
    assert "".join(warning.split()) in "".join(playing.output.split()), "2.18 wraps lines, also within a path"


def test_nothing_is_written_if_one_of_the_documents_is_wrong(playing: Playing, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"{FIRST}---\n{SECOND.replace('name: second, ', '')}")
    with pytest.raises(AssertionError, match=r"document 2: metadata\.name: the job needs a name"):
        playing.play("-e", f"manifest={file}")
    assert playing.written == []


def test_what_is_there_already_is_no_change(playing: Playing, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(SECOND)
    assert not playing.play("-e", "manifest=job.yaml")["changed"]


def test_variables_of_ansible(playing: Playing, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(SECOND)
    result = playing.play("-e", "@job.yaml")
    assert (result["role"], len(result["jobs"])) == ("dljob.operator.pytorch", 1)
    assert [one.path for one in playing.written] == ["/apis/kubeflow.org/v1/namespaces/ml/pytorchjobs/second"]


def test_a_proxy_is_not_asked_for_loopback(playing: Playing, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(SECOND)
    none = "http://127.0.0.1:9"
    playing.play("-e", "manifest=job.yaml", HTTP_PROXY=none, http_proxy=none, NO_PROXY="", no_proxy="")
    assert len(playing.written) == 1
