"""The commands: what they print, where, and their exit codes."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from dljob import cli, completion, output, view
from hypothesis import given
from hypothesis import strategies as st
from support import plain_scalars

from .conftest import PTJS, Cluster
from .test_client import MANIFEST, refuse_creation


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(words)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("command", "words", "options"),
    [
        ("list", ["ptj"], [["-n", "team"], ["-w"], ["--state", "Running"]]),
        ("logs", ["a", "worker", "master-0"], [["-n", "team"], ["--tail", "3"], ["-f"]]),
        ("delete", ["a", "b", "tfjob/c"], [["-n", "team"], ["--context", "other"]]),
        ("get", ["a", "b"], [["-o", "name"]]),
        ("convert", ["one.yaml", "two.yaml"], [["--to", "dljob"], ["-f", "three.yaml"]]),
        ("new", ["jax"], [["--image", "i"], ["--workers", "3"]]),
    ],
)
def test_words_and_options_come_in_any_order(command: str, words: list[str], options: list[list[str]]) -> None:
    parts = [[word] for word in words]
    expected = vars(cli.parser().parse_args([command, *words, *itertools.chain(*options)]))
    for order in itertools.permutations([*parts, *options]):
        if [part for part in order if part in parts] == parts:
            assert vars(cli.parser().parse_args([command, *itertools.chain(*order)])) == expected, order


def test_list(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.job("b")
    cluster.job("a", "tfjobs", status={"phase": "Running", "state": "Running"})
    code, out, err = run(capsys, "list")
    lines = [line.split() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert lines[0] == ["NAME", "STATE", "READY", "GPUS", "RESTARTS", "QUEUE", "RUNNING", "AGE"]
    assert [line[:3] for line in lines[1:]] == [
        ["tfjobs.kubeflow.org/a", "Running", "0/2"],
        ["pytorchjobs.kubeflow.org/b", "Created", "0/2"],
    ]
    assert "\x1b" not in out, "no colors where the output is no terminal"
    assert (
        run(capsys, "list", "-o", "name", "--sort-by=-kind")[1] == "tfjobs.kubeflow.org/a\npytorchjobs.kubeflow.org/b\n"
    )
    assert run(capsys, "list", "-o", "name", "--state", "Running")[1] == "tfjobs.kubeflow.org/a\n"
    assert [job["name"] for job in json.loads(run(capsys, "list", "-o", "json")[1])] == ["a", "b"]
    assert [job["state"] for job in yaml.safe_load(run(capsys, "list", "ptj", "-o", "yaml")[1])] == ["Created"]
    assert run(capsys, "list", "-A", "-o", "wide")[1].split()[0] == "NAMESPACE"
    assert run(capsys, "list", "-n", "none") == (0, "", "There are no such jobs in the namespace none.\n")


def test_what_may_not_be_listed_is_a_warning(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.job("a")
    cluster.denied = {"GET tfjobs"}
    code, out, err = run(capsys, "list")
    assert (code, len(out.splitlines())) == (0, 2)
    assert err == "warning: You may not list tfjobs.kubeflow.org in the namespace team.\n"


def test_a_list_that_is_watched_prints_changes(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cluster.job("a")
    from dljob.client import Client

    watch = Client.watch

    def ends(self: Client, *given: Any, **named: Any) -> Any:
        for number, change in enumerate(watch(self, *given, **named)):
            yield change
            if number == 1:
                raise KeyboardInterrupt
            cluster.end(job)

    monkeypatch.setattr(Client, "watch", ends)
    code, out, _ = run(capsys, "list", "-w")
    assert (code, [line.split()[1] for line in out.splitlines()]) == (130, ["STATE", "Created", "Succeeded"])


def test_get_and_describe(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    job = cluster.job("a", status={"retries": {"worker-0": 2}, "startTime": "2026-01-02T12:00:00Z"})
    cluster.pod(job, "a-worker-0")
    event = {
        "involvedObject": {"kind": "Pod", "name": "a-worker-0"},
        "reason": "Pulled",
        "message": "a\x1b[2Jb",
        "count": 3,
    }
    cluster.fake.add(("team", "events"), {"metadata": {"name": "e", "namespace": "team"}, **event})
    assert json.loads(run(capsys, "get", "a", "-o", "json")[1])["nodes"] == ["node-1"]
    code, out, err = run(capsys, "describe", "ptj/a")
    assert (code, err) == (0, "")
    for text in (
        "State:      Starting",
        "Restarts:   2",
        "Worker   2         1",
        "a-worker-0   Running",
        "Pulled x3",
        "a\\x1b[2Jb",
    ):
        assert text in out
    assert run(capsys, "events", "a")[1].splitlines()[1].endswith("a\\x1b[2Jb")
    cluster.denied = {"GET events"}
    assert run(capsys, "describe", "a")[2] == "warning: You may not list events in the namespace team.\n"
    assert run(capsys, "events", "a")[0] == cli.DENIED


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("get", "absent"), cli.NOT_FOUND, "There is no job absent"),
        (("get", "pod/x"), cli.ERROR, "pod is no kind of training job"),
        (("list", "jaxjobs"), cli.NOT_FOUND, "does not have jaxjobs.kubeflow.org"),
        (("list", "--context", "x"), cli.NO_CLUSTER, "no context 'x'"),
        (("list", "--kubeconfig", "/nowhere"), cli.NO_CLUSTER, "does not exist"),
        (("wait", "a", "--for", "Running", "--timeout", "100ms"), None, "is no time"),
        (("wait", "a", "--for", "Running", "--timeout", "0.1"), cli.TIMEOUT, "is not Running after 0.1 s"),
        (("wait", "a", "--for", "Sleeping"), None, "is no state"),
        (("list", "--sort-by", "color"), None, "is no key"),
        (("suspend", "a", "absent"), cli.NOT_FOUND, "There is no job absent"),
        (("submit", "-f", "/nowhere"), cli.ERROR, "cannot be read"),
    ],
)
def test_errors_are_one_sentence_and_a_code(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int | None, text: str
) -> None:
    cluster.job("a")
    if code is None:
        with pytest.raises(SystemExit) as stopped:
            cli.main(words)
        assert stopped.value.code == cli.USAGE
        assert text in capsys.readouterr().err
        return
    assert cli.main(words) == code
    err = capsys.readouterr().err
    assert err.startswith("error: ") and text in err and err.count("\n") == 1


@pytest.mark.parametrize(("status", "code"), [(401, cli.DENIED), (403, cli.DENIED), (500, cli.ERROR)])
def test_answers_of_the_server_that_are_errors(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], status: int, code: int
) -> None:
    cluster.status = status
    assert run(capsys, "get", "a")[0] == code


@pytest.mark.parametrize(("type_", "code"), [("Succeeded", 0), ("Failed", cli.JOB_FAILED)])
def test_wait_exits_with_the_outcome(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], type_: str, code: int
) -> None:
    cluster.end(cluster.job("a"), type_)
    assert run(capsys, "wait", "a")[0] == code
    assert run(capsys, "wait", "a", "--for", f"condition={type_}")[0] == 0


def test_the_commands_that_change_jobs(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.job("a")
    key = "pytorchjobs.kubeflow.org/a"
    assert run(capsys, "suspend", "a")[1] == f"{key} suspended\n"
    assert run(capsys, "resume", "a")[1] == f"{key} resumed\n"
    assert run(capsys, "restart", "a")[1] == f"{key} restarted\n"
    assert run(capsys, "delete", "a")[1] == f"{key} deleted\n"
    assert cluster.fake.objects[PTJS] == {}


def test_the_manifest_of_a_job_that_cannot_be_created_again_is_printed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.end(cluster.job("a"))
    refuse_creation(cluster)
    code, out, err = run(capsys, "restart", "a")
    first, second, text = err.split("\n", 2)
    assert (code, out) == (1, "") and "was deleted, and could not be created again" in first
    assert second == "Keep this manifest, and create the job with `dljob submit -f FILE`:"
    assert yaml.safe_load(text)["metadata"] == {"name": "a", "namespace": "team"}


def test_what_is_nested_too_deeply_is_a_sentence(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps({**MANIFEST, "spec": deep}))
    code, _, err = run(capsys, "submit", "-f", str(file), "--diff", "--dry-run", "server")
    assert (code, err) == (1, "error: The API server's answer, or a manifest, is nested too deeply.\n")
    for form in ("yaml", "json"):
        assert yaml.safe_load(output.structured({"b": 1}, form)) == {"b": 1}
        assert json.loads(output.structured(deep, form)) == deep


def test_submit(cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all([MANIFEST, {**MANIFEST, "metadata": {"name": "second"}}]))
    key = "pytorchjobs.kubeflow.org"
    code, out, _ = run(capsys, "submit", "-f", str(file), "--dry-run", "server")
    assert (code, out) == (0, f"{key}/new created (dry run)\n{key}/second created (dry run)\n")
    assert PTJS not in cluster.fake.objects
    assert run(capsys, "submit", "-f", str(file))[1] == f"{key}/new created\n{key}/second created\n"
    file.write_text(yaml.safe_dump({**MANIFEST, "metadata": {"name": "new", "labels": {"a": "b"}}}))
    code, out, _ = run(capsys, "submit", "-f", str(file), "--diff")
    assert "+    a: b" in out and out.endswith(f"{key}/new applied\n")


def test_nothing_is_created_where_one_manifest_is_refused(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all([MANIFEST, {**MANIFEST, "kind": "JAXJob"}]))
    assert run(capsys, "submit", "-f", str(file))[0] == cli.NOT_FOUND
    file.write_text(yaml.safe_dump_all([MANIFEST, {"apiVersion": "v1", "kind": "Pod"}]))
    assert "v1 Pod is no kind" in run(capsys, "submit", "-f", str(file))[2]
    assert PTJS not in cluster.fake.objects


def test_submit_reads_a_manifest_as_kubectl_does(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cluster.served.add("v1/mxjobs")
    file = tmp_path / "job.yaml"
    file.write_text(plain_scalars.MANIFEST)
    assert run(capsys, "submit", "-f", str(file)) == (0, "mxjobs.kubeflow.org/first created\n", "")
    sent = [one for one in cluster.requests if one.method == "PATCH"]
    for one in sent:
        assert one.body["metadata"]["annotations"] == plain_scalars.ANNOTATIONS
        assert json.dumps(one.body["spec"]) == plain_scalars.SPEC
    assert len(sent) == 2, "the check, and the creation"


def test_submit_takes_documents_and_the_items_of_lists(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first, second, third = ({**MANIFEST, "metadata": {"name": name}} for name in ("a", "b", "c"))
    items = {"apiVersion": "v1", "kind": "List", "items": [second, None, third]}
    file = tmp_path / "jobs.yaml"
    file.write_text(f"---\n{yaml.safe_dump(first)}---\n# nothing\n---\n{json.dumps(items)}\n---\n")
    code, out, err = run(capsys, "submit", "-f", str(file), "-o", "name")
    assert (code, out.split(), err) == (0, [f"pytorchjobs.kubeflow.org/{name}" for name in "abc"], "")


def test_the_last_of_two_equal_keys_holds(cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As for kubectl, which sends no warning."""
    file = tmp_path / "job.yaml"
    file.write_text(f"{yaml.safe_dump(MANIFEST)}metadata: {{name: other, name: last}}\n")
    assert run(capsys, "submit", "-f", str(file)) == (0, "pytorchjobs.kubeflow.org/last created\n", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no manifest"),
        ("---\n# nothing\n", "has no manifest"),
        ("kind: List\nitems: []\n", "has no manifest"),
        ("kind: List\nitems: [3]\n", "document 1: item 1 of the List is no object"),
        ("kind: List\nitems: 3\n", "document 1: None List is no kind"),
        ("{job}---\n- 1\n", "document 2 is no object: it needs apiVersion, kind and metadata"),
        ("{job}---\n{}\n", "document 2: None None is no kind"),
        ("{job}---\nmetadata: [\n", "cannot be read: while parsing"),
        ("{job}x: .inf\n", "quote it if it is a string"),
        ("{job}null: 1\n", "a key that is null"),
        ("{job}metadata: text\n", "has no metadata.name"),
    ],
)
def test_a_manifest_that_cannot_be_read(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text.replace("{job}", yaml.safe_dump(MANIFEST)))
    code, out, err = run(capsys, "submit", "-f", str(file))
    assert (code, out, err.count("\n")) == (cli.ERROR, "", 1)
    assert err.startswith("error: ") and said in err
    assert cluster.requests == []


@pytest.mark.parametrize(("type_", "code"), [("Succeeded", 0), ("Failed", cli.JOB_FAILED)])
def test_submit_follows_to_the_end_and_exits_with_the_outcome(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, type_: str, code: int
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(MANIFEST))
    original = cluster._watch  # noqa: SLF001

    def ends(exchange: Any, plural: str) -> None:
        threading.Timer(0.05, lambda: cluster.end(cluster.fake.objects[PTJS]["new"], type_)).start()
        original(exchange, plural)

    cluster._watch = ends  # type: ignore[method-assign]  # noqa: SLF001
    found = run(capsys, "submit", "-f", str(file), "--watch")
    assert found[0] == code
    key = "pytorchjobs.kubeflow.org/new"
    assert found[2].splitlines()[:2] == [f"{key} Created 0/1", f"{key} {type_} 0/1"]
    assert ("it is Failed" in found[2]) == (type_ == "Failed")


# --- the terminal


@given(st.text())
def test_nothing_that_a_terminal_acts_on_is_printed(text: str) -> None:
    assert output.printable(text).isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain é", "plain é"), ("a\x1b[31m", "a\\x1b[31m"), ("\u202e", "\\u202e"), ("a\nb", "a\\nb"), ("\x9b", "\\x9b")],
)
def test_control_characters_are_shown(text: str, shown: str) -> None:
    assert output.printable(text) == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0s"), (119, "119s"), (125, "2m5s"), (600, "10m"), (10799, "179m"), (3 * 3600 + 120, "3h2m")),
        *((86400, "24h"), (2 * 86400 + 3600, "2d1h"), (9 * 86400, "9d"), (None, "")),
    ],
)
def test_durations_are_those_of_kubectl(seconds: float | None, text: str) -> None:
    assert output.duration(seconds) == text


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("environ", "wanted"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colors(environ: dict[str, str], wanted: bool) -> None:
    stream: Any = Terminal()
    assert output.colors_wanted(stream, environ) == wanted
    (_, line) = output.Table(("NAME", "STATE"), colored=wanted).lines([("a", view.FAILED)])
    assert ("\x1b[31m" in line) == wanted


def test_the_constants_of_the_command_line_are_those_of_the_modules_it_does_not_load() -> None:
    assert cli.STATES == view.STATES
    assert set(cli.SORT_KEYS) == set(output.SORT_KEYS)


# --- completion


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["su"], ["suspend", "submit"]),
        (["list", "--st"], ["--state"]),
        (["list", "--state", "Su"], ["Suspended", "Succeeded"]),
        (["list", "--state=Su"], ["--state=Suspended", "--state=Succeeded"]),
        (["list", "--state", "=", "Su"], ["Suspended", "Succeeded"]),
        (["list", "--context", "="], ["here"]),
        (["list", "tf"], ["tfjob", "tfjobs.kubeflow.org", "tfjobs.tensorflow.org"]),
        (["get", ""], ["a", "b"]),
        (["get", "-n", "other", ""], []),
        (["list", "--context", ""], ["here"]),
        (["wait", "a", "--for", "fin"], ["finished"]),
        (["submit", "-f", ""], []),
        (["convert", "--to", "d"], ["dljob"]),
        (["convert", ""], []),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_completion(cluster: Cluster, words: list[str], found: list[str]) -> None:
    cluster.job("a")
    cluster.job("b", "tfjobs")
    assert completion.candidates(words)[0] == found


def test_completion_without_a_cluster_has_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert completion.candidates(["get", ""]) == ([], ":4")


def test_kubectl_gets_candidates_and_a_directive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-dljob", "desc"])
    with pytest.raises(SystemExit):
        completion.for_kubectl()
    assert capsys.readouterr().out == "describe\n:4\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "dljob __complete" in capsys.readouterr().out
