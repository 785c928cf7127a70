"""The Caffe2 program without Caffe2: arguments, environment, network, exit statuses."""

from __future__ import annotations

import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from support import example_programs

program = example_programs.load("caffe2/train_digits.py")
FILE = example_programs.TRAINING / "caffe2" / "train_digits.py"
CONFIG = '{"cluster":{"worker":["job-worker-0:2222","job-worker-1:2222"]},"task":{"type":"worker","index":1}}'
REDIS = {
    "SHARD_ID": "1",
    "NUM_SHARDS": "2",
    "RUN_ID": "aycw",
    "REDIS_HOST": "redis-service",
    "REDIS_PORT": "6379",
    "NFS_PATH": "",
    "CAFFE2_CONFIG": CONFIG,
}
NFS = {**REDIS, "REDIS_HOST": "", "NFS_PATH": "/shared"}


def job(environment: dict[str, str], *argv: str) -> object:
    return program.parse_job(program.parse_arguments(argv, environment), environment)


def test_the_operators_variables() -> None:
    made = job(REDIS)
    assert made == program.Job(1, 2, "aycw", "redis-service", 6379, "", "job-worker-1")
    assert (made.backend, job(NFS).backend, job({}).backend) == ("redis", "nfs", "none")
    assert job(NFS).directory == "/shared"


def test_arguments_win() -> None:
    made = job(REDIS, "--shard_id=0", "--num_shards=3", "--run_id=other", "--redis_host=r", "--redis_port=1")
    assert (made.shard, made.shards, made.run_id, made.redis_host, made.redis_port) == (0, 3, "other", "r", 1)


def test_the_arguments_of_the_original_examples() -> None:
    """The arguments in caffe2-operator's manifests, whose program this one replaces."""
    argv = ["--train_data=/d/train", "--test_data=/d/test", "--db_type=leveldb", "--num_gpus=2", "--num_shards=2"]
    argv += [
        "--file_store_path=/share2/public/caffe2/",
        "--shard_id=1",
        "--run_id=15293",
        "--distributed_interfaces=eth0",
    ]
    made = program.parse_job(program.parse_arguments(argv, {}), {})
    assert (made.backend, made.directory, made.run_id) == ("nfs", "/share2/public/caffe2/", "15293")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"NUM_SHARDS": "0"}, "NUM_SHARDS is '0', not a number of at least 1"),
        ({"NUM_SHARDS": "two"}, "NUM_SHARDS is 'two', not a number of at least 1"),
        ({"SHARD_ID": "2"}, "SHARD_ID is '2', not a number from 0 to 1"),
        ({"REDIS_PORT": "x"}, "REDIS_PORT is 'x', not a number from 1 to 65535"),
        ({"REDIS_HOST": ""}, "2 shards need a place to meet: set REDIS_HOST"),
        ({"RUN_ID": ""}, "RUN_ID is not set"),
        ({"CAFFE2_CONFIG": "{}"}, "CAFFE2_CONFIG has no worker 1"),
        ({"CAFFE2_CONFIG": "[]"}, "CAFFE2_CONFIG has no worker 1"),
        ({"CAFFE2_CONFIG": "x"}, "CAFFE2_CONFIG has no worker 1"),
    ],
)
def test_bad_environment_is_named(change: dict[str, str], said: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match=f"^{said}"):
        job({**REDIS, **change})


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
def test_bad_timeout(text: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match="RENDEZVOUS_TIMEOUT"):
        program.rendezvous_timeout({"RENDEZVOUS_TIMEOUT": text})
    assert program.rendezvous_timeout({}) == 300


def test_the_interface_of_a_name() -> None:
    assert program.interface_of("localhost", 1) == "lo"


def test_a_name_that_is_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.socket, "gethostbyname", lambda name: "192.0.2.1")
    with pytest.raises(OSError, match=r"job-worker-1 is 192\.0\.2\.1, which no interface of this pod has"):
        program.interface_of("job-worker-1", 1)


def test_a_name_that_never_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise program.socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(program.socket, "gethostbyname", unknown)
    with pytest.raises(TimeoutError, match=r"own name job-worker-1 does not resolve \(Name or service not known\)"):
        program.interface_of("job-worker-1", 0)


@contextmanager
def server(*answers: bytes) -> Iterator[int]:
    """A server that sends each connection the next of ``answers``; yields its port."""
    left = list(answers)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            assert self.rfile.readline() == b"PING\r\n"
            self.wfile.write(left.pop(0))

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield listening.server_address[1]
        finally:
            listening.shutdown()
            thread.join()


def test_what_answers_at_redis_address_must_be_a_redis() -> None:
    """Before kube-proxy has a Service's rules, a connection to it may leave the cluster and reach another server."""
    said: list[str] = []
    foreign = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"
    with server(foreign, b"-LOADING Redis is loading the dataset in memory\r\n", b"", b"+PONG\r\n") as port:
        program.rendezvous.wait_for(
            "127.0.0.1", port, 60, said.append, connect=program.ping_redis, sleep=lambda seconds: None
        )
    assert [line.partition("not as a Redis server would: ")[2] for line in said[:3]] == [
        "b'HTTP/1.1 400 Bad Request')",
        "b'-LOADING Redis is loading the dataset in memory')",
        "b'')",
    ]
    assert said[0].startswith(f"waiting: 127.0.0.1:{port} does not answer (not as")


def run(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FILE, *argv], env=environment, capture_output=True, text=True, timeout=30, check=False
    )


def test_a_bad_environment_ends_with_2() -> None:
    ended = run({**REDIS, "SHARD_ID": "7"})
    assert (ended.returncode, ended.stderr) == (2, "error: SHARD_ID is '7', not a number from 0 to 1\n")


def test_a_missing_worker_ends_with_1(tmp_path: Path) -> None:
    environment = {**NFS, "NFS_PATH": str(tmp_path), "CAFFE2_CONFIG": "", "RENDEZVOUS_TIMEOUT": "0.3"}
    ended = run(environment)
    assert ended.returncode == 1
    assert "no sign of the workers [0]" in ended.stderr


def test_a_missing_redis_ends_with_1() -> None:
    ended = run(
        {**REDIS, "REDIS_HOST": "127.0.0.1", "REDIS_PORT": "1", "CAFFE2_CONFIG": "", "RENDEZVOUS_TIMEOUT": "0.3"}
    )
    assert ended.returncode == 1
    assert "127.0.0.1:1 does not answer" in ended.stderr or "No module named 'redis'" in ended.stderr


def test_the_image_offers_the_program_that_manifests_call() -> None:
    from devtools.build.images import definition

    offered = definition.load("caffe2").programs
    assert "/usr/local/caffe2/caffe2/python/examples/resnet50_trainer.py" in offered
    for name in ("caffe2-digits-redis.yaml", "caffe2-digits-nfs.yaml"):
        documents = list(yaml.safe_load_all((example_programs.ROOT / "examples" / name).read_text()))
        assert documents[0]["spec"]["replicaSpecs"]["template"]["spec"]["containers"][0]["name"] == "caffe2"
