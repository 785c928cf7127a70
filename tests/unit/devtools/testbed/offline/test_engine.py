"""The private engine's configuration, which must not collide with an installed Docker."""

import json
import subprocess
from ipaddress import IPv4Network
from pathlib import Path

from devtools.testbed.base.settings import Settings
from devtools.testbed.offline import engine

SETTINGS = Settings(Path("/state"), Path("/cache"), "dljob")
BLOCK = IPv4Network("172.30.104.0/22")


def test_daemon_keeps_to_its_own_places_and_rules() -> None:
    config = engine.daemon_config(SETTINGS, Path("/cache/engines/0/docker"), BLOCK, 1400, None)
    assert config["iptables"] is False and config["ip6tables"] is False
    assert config["bridge"] == SETTINGS.default_bridge != "docker0"
    assert config["hosts"] == [f"unix://{SETTINGS.run_dir}/docker.sock"]
    assert config["data-root"] == "/cache/engines/0/docker"
    assert config["cgroup-parent"] == f"/{SETTINGS.cgroup}"
    assert config["default-address-pools"] == [{"base": "172.30.106.0/23", "size": 24}]
    assert "default-runtime" not in config
    json.dumps(config)


def test_runtime_is_wrapped_only_where_asked() -> None:
    config = engine.daemon_config(SETTINGS, Path("/cache/engines/0/docker"), BLOCK, 1500, "/run/x/wrapper")
    assert config["runtimes"][config["default-runtime"]] == {"path": "/run/x/wrapper"}


def wrapped(*arguments: str) -> str:
    done = subprocess.run(
        [engine.RUNTIME, *arguments], env={"PATH": "/usr/bin:/bin", "RUNC": "echo"}, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    return done.stdout


def test_wrapper_drops_the_one_capability_and_passes_everything_on(tmp_path: Path) -> None:
    capabilities = ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_SYS_TIME"]
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    for order in (capabilities, capabilities[1:], capabilities[:2]):
        spec = {"process": {"capabilities": {"bounding": order, "effective": order}}}
        (bundle / "config.json").write_text(json.dumps(spec, separators=(",", ":")))
        assert wrapped("create", "--bundle", str(bundle), "id") == f"create --bundle {bundle} id\n"
        changed = json.loads((bundle / "config.json").read_text())["process"]["capabilities"]
        assert changed["bounding"] == changed["effective"] == [c for c in order if c != "CAP_SYS_RESOURCE"]


def test_wrapper_changes_an_execs_specification_too(tmp_path: Path) -> None:
    spec = tmp_path / "process.json"
    spec.write_text('{"capabilities":{"bounding":["CAP_SYS_RESOURCE","CAP_CHOWN"]}}')
    wrapped("exec", "--process", str(spec), "id")
    assert "SYS_RESOURCE" not in spec.read_text()


def test_launch_makes_its_mounts_before_the_engine_starts() -> None:
    script = engine.launch_script(Path("/tree"), Path("/run/x/usr"), Path("/run/x/daemon.json"), "tini").splitlines()
    assert script[0] == "set -e"
    assert "lowerdir=/tree/usr:/run/x/usr:/usr /usr" in script[1] and "-o ro," in script[1]
    assert {f"mount -t tmpfs tmpfs {path}" for path in engine.PRIVATE_RUN_DIRS} <= set(script)
    assert script[-1] == "exec tini -- dockerd --config-file /run/x/daemon.json"


def test_launch_without_missing_modules_adds_no_layer() -> None:
    assert "lowerdir=/tree/usr:/usr /usr" in engine.launch_script(Path("/tree"), None, Path("/c"), "tini")


def test_bounding_set() -> None:
    status = "Name:\tx\nCapBnd:\t000001fffeffffff\n"
    assert not engine.bounding_set(status) >> engine.CAP_SYS_RESOURCE & 1
    assert engine.bounding_set(status) >> engine.CAP_SYS_ADMIN & 1
    assert engine.bounding_set("") == 0


def test_cgroups_are_looked_for_in_every_hierarchy() -> None:
    mounts = (
        "30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
        "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "33 25 8:1 / /cgroup rw - ext4 /dev/vda rw\n"
    )
    assert engine.cgroup_dirs("x", mounts) == [
        Path("/sys/fs/cgroup/memory/x"),
        Path("/sys/fs/cgroup/unified/x"),
    ]
