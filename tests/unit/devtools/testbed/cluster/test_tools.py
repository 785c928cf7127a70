"""The smaller parts: Go builds, kwok's nodes, advertised GPUs, kubeconfigs, running programs, the command line."""

import base64
import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from devtools.paths import ROOT
from devtools.testbed import client
from devtools.testbed.base import gobuild, shell, versions
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.base.state import State
from devtools.testbed.cluster import cli, gpu, kwok, lifecycle

GO_DIR = ROOT / "hack/go"


@pytest.mark.parametrize(
    ("text", "version"),
    [("go version go1.26.8 linux/amd64", (1, 26)), ("go1.21", (1, 21)), ("", None), ("gone", None)],
)
def test_go_version(text: str, version: tuple[int, int] | None) -> None:
    assert gobuild.parse_go_version(text) == version


def test_kubernetes_is_stamped_with_its_version() -> None:
    flags = gobuild.kubernetes_ldflags("v1.34.4")
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in flags
    assert "gitMajor=1 " in flags and flags.endswith("gitMinor=34")


@pytest.mark.parametrize(
    "program",
    [
        *(gobuild.KIND, gobuild.KWOK, gobuild.HELM, gobuild.KUEUE, gobuild.VOLCANO),
        *(gobuild.CONTAINERD, gobuild.ETCD, gobuild.COREDNS),
    ],
)
def test_modules_and_their_checksums_are_committed(program: gobuild.Program) -> None:
    folder = GO_DIR / program.module
    tracked = subprocess.run(
        ["git", "check-ignore", folder / "go.mod", folder / "go.sum"], cwd=ROOT, capture_output=True
    )
    assert tracked.returncode == 1, "git ignores a module file"
    assert (folder / "go.mod").is_file() and (folder / "go.sum").stat().st_size > 0


def test_module_versions_match_the_tools_constants() -> None:
    assert f"sigs.k8s.io/kind {versions.KIND} " in (GO_DIR / "kind/go.mod").read_text()
    assert f"sigs.k8s.io/kueue {versions.KUEUE} " in (GO_DIR / "kueue/go.mod").read_text()
    assert f"github.com/containerd/containerd/v2 {versions.CONTAINERD}\n" in (GO_DIR / "containerd/go.mod").read_text()
    assert f"volcano.sh/volcano {versions.VOLCANO} " in (GO_DIR / "volcano/go.mod").read_text()
    assert f"helm.sh/helm/v3 {versions.HELM} " in (GO_DIR / "helm/go.mod").read_text()


def test_builds_do_not_change_what_is_locked() -> None:
    env = gobuild.go_env()
    assert "-mod=readonly" in env["GOFLAGS"] and env["CGO_ENABLED"] == "0"


def test_a_programs_place_depends_on_its_sources_and_flags(tmp_path: Path) -> None:
    module = tmp_path / "m"
    module.mkdir()
    (module / "go.mod").write_text("module m")
    program = gobuild.Program("m", {".": "m"})
    first = gobuild.program_dir(tmp_path, tmp_path, program)
    assert first != gobuild.program_dir(tmp_path, tmp_path, gobuild.Program("m", {".": "m"}, "-s"))
    assert first != gobuild.program_dir(tmp_path, tmp_path, gobuild.Program("m", {".": "m"}, tags=["small"]))
    (module / "go.mod").write_text("module n")
    assert first != gobuild.program_dir(tmp_path, tmp_path, program)


GO = """#!/bin/sh
case $1 in env) echo go1.26.8 ;; build) mkdir -p "$OUT" && touch "$OUT/m" ;; esac
echo "$@" >>"$LOG"
"""


@pytest.mark.parametrize(("tags", "flag"), [(("small", "no_cri"), "-tags small,no_cri "), ((), "")])
def test_what_is_listed_and_what_is_compiled_have_the_same_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: tuple[str, ...], flag: str
) -> None:
    go, log = tmp_path / "go", tmp_path / "log"
    go.write_text(GO)
    go.chmod(0o755)
    (tmp_path / "sources/m").mkdir(parents=True)
    program = gobuild.Program("m", {".": "m"}, tags=tags)
    made = gobuild.program_dir(tmp_path / "cache", tmp_path / "sources", program)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("OUT", str(made.with_name(f".partial-{made.name}")))
    assert gobuild.build(tmp_path / "cache", tmp_path / "sources", program) == made
    listed, compiled = (line for line in log.read_text().splitlines() if not line.startswith("env"))
    assert listed.startswith(f"list -deps {flag}-f ")
    assert compiled.startswith(f"build -v {flag}-ldflags ")


KUBERNETES_GO = """#!/bin/sh
case $1 in build)
    mkdir -p "$GOCACHE" && ls "$GOCACHE" >"$LOG" && touch "$GOCACHE/compiled" && [ ! -e "$BROKEN" ] && touch "$OUT/kubectl" ;;
esac
"""


def test_what_kubernetes_was_compiled_to_is_kept_only_until_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, broken, log = tmp_path / "go", tmp_path / "broken", tmp_path / "log"
    go.write_text(KUBERNETES_GO)
    go.chmod(0o755)
    program = gobuild.kubernetes("1.37", "kubectl")
    (tmp_path / "sources" / program.module).mkdir(parents=True)
    made = gobuild.program_dir(tmp_path / "cache", tmp_path / "sources", program)
    monkeypatch.setattr(gobuild, "go_tool", lambda: str(go))
    monkeypatch.setattr(gobuild, "_module_folder", lambda *_: contextlib.nullcontext(tmp_path))
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("BROKEN", str(broken))
    monkeypatch.setenv("OUT", str(made.with_name(f".partial-{made.name}")))
    monkeypatch.setenv("GOCACHE", str(tmp_path / "users"))
    broken.touch()
    with pytest.raises(ClusterError, match="go build of kubernetes"):
        gobuild.build(tmp_path / "cache", tmp_path / "sources", program)
    broken.unlink()
    gobuild.build(tmp_path / "cache", tmp_path / "sources", program)
    assert log.read_text() == "compiled\n"  # the second attempt goes on from the first one's
    assert not (tmp_path / "users").exists()
    assert [path.name for path in made.parent.iterdir() if path.is_dir()] == [made.name]


@pytest.fixture
def tool_without_a_name(tmp_path: Path) -> Iterator[Path]:
    """A folder of modules with the module ``m``, whose program prints a constant that its dependency lacks."""
    tool = 'package main\n\nimport "example.com/names/name"\n\nfunc main() { print(name.Name) }\n'
    for file, text in {
        "names/go.mod": "module example.com/names\n",
        "names/name/name.go": "package name\n",
        "tool/go.mod": "module example.com/tool\n",
        "tool/main.go": tool,
        "go/m/go.mod": "module m\n\nrequire (\n\texample.com/names v0.0.0\n\texample.com/tool v0.0.0\n)\n\nreplace (\n"
        f"\texample.com/names => {tmp_path}/names\n\texample.com/tool => {tmp_path}/tool\n)\n",
        "go/m/go.sum": "",
        "go/m/more/one.go": 'package name\n\nconst Name = "one"\n',
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "names/name").chmod(0o555)  # as in go's cache
    yield tmp_path / "go"
    (tmp_path / "names/name").chmod(0o755)


def test_a_file_that_a_dependency_lacks_is_added_to_a_copy_of_it(tmp_path: Path, tool_without_a_name: Path) -> None:
    packages = {"example.com/tool": "tool"}
    with pytest.raises(ClusterError, match=r"undefined: name\.Name"):
        gobuild.build(tmp_path / "cache", tool_without_a_name, gobuild.Program("m", packages))
    addition = gobuild.Addition("more/one.go", "example.com/names", "name")
    program = gobuild.Program("m", packages, addition=addition)
    made = gobuild.build(tmp_path / "cache", tool_without_a_name, program)
    assert subprocess.run([made / "tool"], capture_output=True, text=True, check=True).stderr == "one"
    assert [file.name for file in (tmp_path / "names/name").iterdir()] == ["name.go"]


def test_kwok_node_is_labelled_and_tainted() -> None:
    node = kwok.node_manifest(7)
    assert node["metadata"]["name"] == "kwok-0007"
    assert node["metadata"]["labels"]["type"] == "kwok"
    assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert node["spec"]["taints"] == [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]
    assert node["spec"]["taints"][0] is not kwok.TAINT


def test_kwok_runs_no_other_nodes() -> None:
    command = kwok.command(Path("/k"), Settings(Path("/s"), Path("/c"), "dljob"))
    assert "--manage-all-nodes=false" in command
    assert command[command.index("--manage-nodes-with-label-selector") + 1] == "type=kwok"
    assert command[command.index("--config") + 1] == "/s/kwok.yaml"


def test_kwok_gets_the_stages_of_its_own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without stages it plays no kubelet, and it has none by default since 0.8."""
    folder = tmp_path / "kustomize" / "stage" / "node" / "fast"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text("kind: Kustomization\nresources: [b.yaml]\n")
    (folder / "b.yaml").write_text("kind: Stage\nmetadata: {name: b}\n---\n")
    (folder / "a.yaml").write_text("kind: Stage\nmetadata: {name: a}\n")
    monkeypatch.setattr(gobuild, "module_dir", lambda *asked: {("kwok", kwok.MODULE): tmp_path}[asked[1:]])
    assert [one["metadata"]["name"] for one in kwok.stages("node/fast", "pod/fast")] == ["a", "b"]


def test_kwok_is_told_how_much_it_does_in_parallel() -> None:
    """It has no defaults for what its configuration leaves out, and refuses 0."""
    options = kwok.configuration()["options"]
    assert all(value > 0 for name, value in options.items() if name.endswith("Parallelism"))
    assert {"nodeLeaseParallelism", "nodePlayStageParallelism", "podPlayStageParallelism"} <= options.keys()


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_readiness_of_a_node(status: str) -> None:
    node = {"status": {"conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status}]}}
    assert kwok.is_ready(node) is (status == "True")
    assert not kwok.is_ready({})


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", gpu.ALPHA_NAME])
def test_gpu_patch(resource: str) -> None:
    patch = yaml.safe_load(gpu.status_patch(resource, 4))
    assert patch["status"]["capacity"] == patch["status"]["allocatable"] == {resource: "4"}
    assert yaml.safe_load(gpu.status_patch(resource, 0))["status"]["capacity"] == {resource: None}


@pytest.mark.parametrize("resource", ["gpu", "nvidia.com/", "/gpu", "a b/gpu"])
def test_gpu_resource_must_be_an_extended_one(resource: str) -> None:
    with pytest.raises(ClusterError, match="--resource"):
        gpu.status_patch(resource, 1)


def kubeconfig(**changes: object) -> str:
    def packed(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    document: dict[str, object] = {
        "current-context": "kind-x",
        "contexts": [{"name": "kind-x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": "https://127.0.0.1:6", "certificate-authority-data": packed("ca")},
            }
        ],
        "users": [
            {
                "name": "u",
                "user": {"client-certificate-data": packed("cert"), "client-key-data": packed("key")},
            }
        ],
    }
    return yaml.safe_dump({**document, **changes})


def test_kubeconfig_is_read() -> None:
    assert client.parse_kubeconfig(kubeconfig()) == client.Access("https://127.0.0.1:6", "ca", "cert", "key")


@pytest.mark.parametrize("changes", [{"current-context": "other"}, {"users": [{"name": "u", "user": {"token": "t"}}]}])
def test_kubeconfig_without_a_certificate_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="client certificate"):
        client.parse_kubeconfig(kubeconfig(**changes))


def test_failed_program_is_reported_with_its_last_lines() -> None:
    with pytest.raises(ClusterError) as raised:
        shell.run(["sh", "-c", "echo first; echo the reason >&2; exit 3"], fix="do that")
    assert "the reason" in str(raised.value) and "(3)" in str(raised.value) and "fix: do that" in str(raised.value)


def test_missing_program_is_named() -> None:
    with pytest.raises(ClusterError, match="no-such-program-here: not found"):
        shell.run(["no-such-program-here"])
    assert shell.run(["no-such-program-here"], check=False).returncode == 127


def test_a_program_that_does_not_exit_times_out() -> None:
    with pytest.raises(ClusterError, match="timed out after"):
        shell.run(["sleep", "60"], timeout=0.1)


@pytest.mark.parametrize(("left", "right"), [("false", "cat"), ("true", "false")])
def test_either_side_of_a_pipe_may_fail_it(left: str, right: str) -> None:
    with pytest.raises(ClusterError):
        shell.pipe([left], [right], env={}, producer_env={})
    shell.pipe(["echo", "x"], ["grep", "x"], env={}, producer_env={})


@pytest.mark.parametrize("argv", [["kwok", "-1"], ["kwok"], ["gpu", "x"], ["push"], ["sideways"], []])
def test_wrong_arguments_are_refused(argv: list[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parser().parse_args(argv)


def test_status_without_a_cluster_is_down_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DLJOB_CLUSTER_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("DLJOB_CACHE", str(tmp_path / "cache"))
    assert cli.main(["status"]) == 1
    assert "down" in capsys.readouterr().out
    assert not (tmp_path / "none").exists() and not (tmp_path / "cache").exists()


def test_commands_without_a_cluster_say_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DLJOB_CLUSTER_DIR", str(tmp_path / "none"))
    assert cli.main(["push", "a"]) == 1
    assert "make cluster" in capsys.readouterr().err


def test_environment_lines_are_for_a_shell(tmp_path: Path) -> None:
    settings = settings_from({"HOME": "/h", "DLJOB_CLUSTER_DIR": str(tmp_path / "with space")})
    state = State(engine="own", docker_host="unix:///run/x.sock", registry_port=5001)
    lines = "\n".join(lifecycle.env_lines(settings, state))
    shown = subprocess.run(
        ["sh", "-c", f'{lines}\necho "$KUBECONFIG|$DLJOB_REGISTRY|$DOCKER_HOST|$PATH"'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    config, registry, docker, path = shown.split("|")
    assert config == str(settings.kubeconfig)
    assert (registry, docker) == ("127.0.0.1:5001", "unix:///run/x.sock")
    assert path.split(":")[0] == str(settings.bin_dir)


def test_registry_has_a_fixed_address_in_our_own_subnet_only() -> None:
    assert lifecycle.registry_address(State(block="172.30.104.0/22")) == "172.30.104.250"
    assert lifecycle.registry_address(State()) == ""
