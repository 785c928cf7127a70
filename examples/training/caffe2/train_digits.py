#!/usr/bin/env python3
"""Train a small network on the UCI digits with Caffe2, alone or as one of several shards.

The same program is every worker of a job; SHARD_ID and NUM_SHARDS, which the operator sets, say which one. The workers
meet through the Redis server at REDIS_HOST, or in the directory NFS_PATH; each trains on its share of the data, and
Gloo adds their gradients up in every step. Shard 0 tests the result:

    final: test_accuracy=0.9750 shards=2 epochs=20 backend=redis

Takes the arguments of Caffe2's own resnet50_trainer.py, whose place it has in the image, as far as they mean something
here. Exit status: 0 done, 1 failed, 2 bad arguments or environment, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import shutil
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# the modules that all frameworks' examples share; the images keep this layout
sys.path.extend(str(Path(__file__).resolve().parents[1] / folder) for folder in ("caffe2", "shared"))
import digits
import meeting
import rendezvous
from process import BadEnvironmentError, end_on_signals, leave, number, positive, say, status_of

HIDDEN_UNITS = 128
MOMENTUM = 0.9
RENDEZVOUS_VARIABLE = "RENDEZVOUS_TIMEOUT"
RENDEZVOUS_SECONDS = 300.0
RETRY_SECONDS = 0.5
PING_SECONDS = 5.0
SIOCGIFADDR = 0x8915
"""Linux' request for the IPv4 address of a network interface."""


@dataclass(frozen=True)
class Job:
    """Which worker of how many this is, and where they meet: at a Redis server, in a directory, or (alone) nowhere."""

    shard: int
    shards: int
    run_id: str
    redis_host: str
    redis_port: int
    directory: str
    own_name: str
    """The name under which the others know this worker, "" where nobody said."""

    @property
    def backend(self) -> str:
        if self.shards == 1:
            return "none"
        return "redis" if self.redis_host else "nfs"


def parse_arguments(argv: Sequence[str], environment: Mapping[str, str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num_epochs", type=positive(int), default=20, help="passes over the training data")
    parser.add_argument("--batch_size", type=positive(int), default=32, help="samples of one worker in one step")
    parser.add_argument("--base_learning_rate", type=positive(float), default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the samples")
    parser.add_argument("--shard_id", default=environment.get("SHARD_ID") or "0", help="default: $SHARD_ID")
    parser.add_argument("--num_shards", default=environment.get("NUM_SHARDS") or "1", help="default: $NUM_SHARDS")
    parser.add_argument("--run_id", default=environment.get("RUN_ID") or "", help="default: $RUN_ID")
    parser.add_argument("--redis_host", default=environment.get("REDIS_HOST") or "", help="default: $REDIS_HOST")
    parser.add_argument("--redis_port", default=environment.get("REDIS_PORT") or "6379", help="default: $REDIS_PORT")
    parser.add_argument("--file_store_path", default=environment.get("NFS_PATH") or "", help="default: $NFS_PATH")
    parser.add_argument(
        "--distributed_interfaces",
        default="",
        help="network interface for Gloo; default: the one of this worker's name",
    )
    for name in ("train_data", "test_data", "db_type", "num_gpus", "gpus", "epoch_size", "image_size"):
        parser.add_argument(f"--{name}", help="taken, and without effect: this trains on the digits, on the CPU")
    return parser.parse_args(argv)


def parse_job(options: argparse.Namespace, environment: Mapping[str, str]) -> Job:
    """The job that the arguments and variables describe. Raises BadEnvironmentError, which names what is wrong."""
    shards = number("NUM_SHARDS", options.num_shards, 1)
    shard = number("SHARD_ID", options.shard_id, 0, shards - 1)
    if shards > 1:
        if not options.redis_host and not options.file_store_path:
            raise BadEnvironmentError(
                f"{shards} shards need a place to meet: set REDIS_HOST to a Redis server, or NFS_PATH to a directory "
                "that all of them share"
            )
        if not options.run_id:
            raise BadEnvironmentError("RUN_ID is not set: without it this job could not be told from others")
    return Job(
        shard=shard,
        shards=shards,
        run_id=options.run_id,
        redis_host=options.redis_host,
        redis_port=number("REDIS_PORT", options.redis_port, 1, 65535),
        directory=options.file_store_path,
        own_name=own_name(environment.get("CAFFE2_CONFIG", ""), shard),
    )


def own_name(config: str, shard: int) -> str:
    """The host name of worker ``shard`` in CAFFE2_CONFIG, "" without one."""
    if not config:
        return ""
    try:
        return str(json.loads(config)["cluster"]["worker"][shard]).rpartition(":")[0]
    except (ValueError, LookupError, TypeError) as error:
        raise BadEnvironmentError(f"CAFFE2_CONFIG has no worker {shard}: {config}") from error


def rendezvous_timeout(environment: Mapping[str, str]) -> float:
    """Seconds to wait for the other workers: $RENDEZVOUS_TIMEOUT, default 300."""
    text = environment.get(RENDEZVOUS_VARIABLE, "")
    try:
        seconds = float(text) if text else RENDEZVOUS_SECONDS
    except ValueError:
        seconds = -1.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise BadEnvironmentError(f"{RENDEZVOUS_VARIABLE} is {text!r}, not a positive number of seconds")
    return seconds


# --- the network between the workers


def interface_of(name: str, timeout: float) -> str:
    """The network interface that has the address of ``name``, which is this worker's own.

    Gloo would otherwise look up the host's name. In a pod on the node's network that is the node's, which need not
    resolve, or resolves to a loopback address that the workers on other nodes cannot use.
    """
    start, told = time.monotonic(), False
    while True:
        try:
            address = socket.gethostbyname(name)
            break
        except socket.gaierror as error:  # the name is published once the pod has an address
            if time.monotonic() - start >= timeout:
                raise TimeoutError(f"this worker's own name {name} does not resolve ({error.strerror})") from error
            if not told:
                say(f"waiting: this worker's own name {name} does not resolve yet ({error.strerror})")
                told = True
            time.sleep(RETRY_SECONDS)
    for _, interface in socket.if_nameindex():
        if _ipv4(interface) == address:
            say(f"{name} is {address}, on {interface}")
            return interface
    raise OSError(f"{name} is {address}, which no interface of this pod has: is CAFFE2_CONFIG this job's own?")


def _ipv4(interface: str) -> str:
    """The interface's IPv4 address, "" if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def ping_redis(host: str, port: int) -> None:
    """Connect, and have Redis' own answer: until a Service is set up, something else may answer at its address."""
    with socket.create_connection((host, port), timeout=PING_SECONDS) as connection:
        connection.sendall(b"PING\r\n")
        line = connection.recv(80).partition(b"\r\n")[0]
    if line != b"+PONG":
        raise OSError(f"not as a Redis server would: {line!r}")


@contextmanager
def store_folder(job: Job, timeout: float) -> Iterator[Path]:
    """The directory through which Gloo's processes meet, for as long as they do; then all of them leave together."""
    who = f"shard {job.shard}"

    def tell(text: str) -> None:
        say(f"{who}: {text}")

    if job.backend == "nfs":
        root = Path(job.directory) / f"caffe2-{job.run_id}"
        workers = meeting.DirectoryBoard(root / "workers")
        attempt = meeting.agree(workers, job.shard, job.shards, timeout, tell)
        shared = root / attempt
        shared.mkdir(exist_ok=True)
        tell(f"all {job.shards} workers are there, meeting in {shared}")
        yield shared
        meeting.part(workers, attempt, job.shard, job.shards, timeout)
        return
    import redis

    rendezvous.wait_for(job.redis_host, job.redis_port, timeout, tell, connect=ping_redis)
    client = redis.Redis(job.redis_host, job.redis_port, socket_timeout=30)
    key = f"caffe2:{job.run_id}"
    board = meeting.RedisBoard(client, f"{key}:workers")
    attempt = meeting.agree(board, job.shard, job.shards, timeout, tell)
    tell(f"all {job.shards} workers are there, meeting at {job.redis_host}:{job.redis_port}")
    own = Path(tempfile.mkdtemp(prefix="caffe2-"))
    try:
        with meeting.Mirror(meeting.RedisBoard(client, f"{key}:{attempt}"), own):
            yield own
        meeting.part(board, attempt, job.shard, job.shards, timeout)
    finally:
        shutil.rmtree(own, ignore_errors=True)


# --- the training


def build(shards: int, gloo: Mapping[str, Any] | None, learning_rate: float) -> Any:
    """A perceptron with one hidden layer, its gradients added up over all shards."""
    from caffe2.python import brew, data_parallel_model, model_helper, optimizer

    model = model_helper.ModelHelper(name="digits")

    def forward(model: Any, scale: float) -> list[Any]:
        hidden = brew.relu(model, brew.fc(model, "data", "fc1", digits.PIXELS, HIDDEN_UNITS), "relu1")
        scores = brew.fc(model, hidden, "fc2", HIDDEN_UNITS, digits.CLASSES)
        softmax, loss = model.SoftmaxWithLoss([scores, "label"], ["softmax", "loss"])
        brew.accuracy(model, [softmax, "label"], "accuracy")
        # every shard's gradients are added up: each loss counts as the share that it is of the whole
        return [model.Scale(loss, "scaled_loss", scale=scale)]

    data_parallel_model.Parallelize(
        model,
        input_builder_fun=lambda model: None,  # the batches are fed
        forward_pass_builder_fun=forward,
        optimizer_builder_fun=lambda model: optimizer.build_sgd(model, learning_rate, momentum=MOMENTUM),
        devices=[0],
        rendezvous=gloo,
        cpu_device=True,
    )
    return model


def feed(images: Any, labels: Any) -> None:
    """Make these the next batch; the names are Parallelize's for its first device."""
    from caffe2.python import workspace

    workspace.FeedBlob("cpu_0/data", images)
    workspace.FeedBlob("cpu_0/label", labels)


def train(options: argparse.Namespace, job: Job, store: Path | None, interface: str) -> None:
    """Train on this shard, and test as shard 0."""
    import numpy
    from caffe2.python import core, workspace

    core.GlobalInit(["caffe2", "--caffe2_log_level=3"])
    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    own = data.take(digits.shard(train_indices, job.shard, job.shards))
    steps = digits.steps_per_epoch(len(train_indices), job.shards, options.batch_size)
    say(f"shard {job.shard} of {job.shards}: {len(own)} of {len(train_indices)} samples, {steps} steps an epoch")

    images, labels = numpy.array(own.images, "float32"), numpy.array(own.labels, "int32")
    gloo = None
    if store is not None:
        workspace.RunOperatorOnce(core.CreateOperator("FileStoreHandlerCreate", [], ["store"], path=str(store)))
        gloo = {
            "kv_handler": "store",
            "num_shards": job.shards,
            "shard_id": job.shard,
            "engine": "GLOO",
            "transport": "tcp",
            "interface": interface,
            "exit_nets": None,
        }
    feed(images[: options.batch_size], labels[: options.batch_size])
    model = build(job.shards, gloo, options.base_learning_rate)
    workspace.RunNetOnce(model.param_init_net)
    workspace.CreateNet(model.net)
    for epoch in range(1, options.num_epochs + 1):
        start = time.monotonic()
        loss = hits = 0.0
        for batch in digits.batches(range(len(own)), steps, options.batch_size, seed=options.seed + epoch):
            feed(images[batch], labels[batch])
            workspace.RunNet(model.net)
            loss += float(workspace.FetchBlob("cpu_0/loss"))
            hits += float(workspace.FetchBlob("cpu_0/accuracy"))
        say(
            f"shard {job.shard}: epoch {epoch}/{options.num_epochs} loss={loss / steps:.4f} "
            f"accuracy={hits / steps:.4f} seconds={time.monotonic() - start:.2f}"
        )
        if not math.isfinite(loss):
            raise RuntimeError(f"the loss is {loss} in epoch {epoch}: lower --base_learning_rate")
    if job.shard == 0:
        tested = accuracy(data.take(test_indices))
        say(f"final: test_accuracy={tested:.4f} shards={job.shards} epochs={options.num_epochs} backend={job.backend}")


def accuracy(data: digits.Digits) -> float:
    """The share of ``data`` that the trained network recognises, 0..1."""
    import numpy
    from caffe2.python import brew, model_helper, workspace

    model = model_helper.ModelHelper(name="test", init_params=False)
    hidden = brew.relu(model, brew.fc(model, "test_data", "cpu_0/fc1", digits.PIXELS, HIDDEN_UNITS), "test_relu1")
    brew.fc(model, hidden, "cpu_0/fc2", HIDDEN_UNITS, digits.CLASSES)
    workspace.FeedBlob("test_data", numpy.array(data.images, "float32"))
    workspace.RunNetOnce(model.net)
    predicted = workspace.FetchBlob("cpu_0/fc2").argmax(axis=1)
    return float((predicted == numpy.array(data.labels)).mean())


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv, os.environ)
    job = parse_job(options, os.environ)
    timeout = rendezvous_timeout(os.environ)
    end_on_signals()
    if job.shards == 1:
        train(options, job, None, "")
        return 0
    interface = options.distributed_interfaces or (interface_of(job.own_name, timeout) if job.own_name else "")
    with store_folder(job, timeout) as store:
        train(options, job, store, interface)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
