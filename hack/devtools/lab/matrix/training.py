"""One process of a training whose steps are collectives between all processes, and which fails on request.

``python training.py FRAMEWORK`` runs in the pods of `make matrix`. Each step of 0.2 s prints a line, by which the
harness sees that the training goes on. The file FAULT, which the harness writes into a container, says what the process
does next: raise an exception, exit with 3, or take memory until it is killed.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FAULT = Path("/tmp/matrix-fault")
STEPS = int(os.environ.get("MATRIX_STEPS") or 40)
SECONDS = 0.2


def asked() -> str:
    """What the harness wants of this process, "" for nothing."""
    try:
        return FAULT.read_text().strip()
    except OSError:
        return ""


def obey() -> None:
    """Faults that need no step: also those of servers, which wait inside the framework."""
    taken = []
    while True:
        what = asked()
        while what == "oom":
            FAULT.unlink(missing_ok=True)
            taken.append(b"x" * 2**25)
        if what == "exit 3 of a server":
            os._exit(3)
        time.sleep(0.1)


def step(number: int, processes: int) -> None:
    """The end of one step."""
    print(f"step {number} of {STEPS}, {processes} processes", flush=True)
    time.sleep(SECONDS)
    what = asked()
    if what in ("exception", "exit 3"):
        FAULT.unlink()  # torchrun starts the program again in the same container
    if what == "exception":
        raise RuntimeError("an exception, as the harness asked for")
    if what == "exit 3":
        sys.exit(3)


def steps(collective: Callable[[], Any], processes: int, version: str) -> None:
    """The training: one collective a step."""
    print(f"version {version}", flush=True)
    for number in range(1, STEPS + 1):
        collective()
        step(number, processes)


def eventually(do: Callable[[], Any]) -> Any:
    """The result, once the names and the servers of the other processes are there."""
    while True:
        try:
            return do()
        except OSError:
            time.sleep(0.5)


def torch() -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    steps(lambda: dist.all_reduce(torch.ones(8)), dist.get_world_size(), torch.__version__)
    dist.barrier()
    dist.destroy_process_group()


def jax() -> None:
    import jax
    import numpy
    from jax.experimental import multihost_utils

    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # not the default of 0.4
    jax.distributed.initialize(
        num_processes=int(os.environ["NUM_PROCESSES"]),
        process_id=int(os.environ["PROCESS_ID"]),
        cluster_detection_method="deactivate",
    )
    steps(lambda: multihost_utils.process_allgather(numpy.ones(8)), jax.process_count(), jax.__version__)
    jax.distributed.shutdown()


def mirrored() -> None:
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function
    def sums() -> Any:
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones(8)))

    steps(sums, strategy.num_replicas_in_sync, tf.__version__)


def parameter_server() -> None:
    import tensorflow as tf

    config = json.loads(os.environ.pop("TF_CONFIG"))
    members, task = config["cluster"], config["task"]
    spec = tf.train.ClusterSpec(members)
    if task["type"] != "chief":
        tf.distribute.Server(spec, job_name=task["type"], task_index=task["index"]).join()
        return
    for address in (*members["ps"], *members["worker"]):
        host, _, port = address.rpartition(":")
        eventually(partial(socket.create_connection, (host, int(port)), 5)).close()
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, task_type="chief", task_id=0, rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        total = tf.Variable(0.0)

    @tf.function
    def add() -> Any:
        return strategy.run(lambda: total.assign_add(1.0))

    def both() -> None:
        for _ in range(2 * len(members["worker"])):
            coordinator.schedule(add)
        coordinator.join()

    steps(both, sum(map(len, members.values())), tf.__version__)


def mxnet() -> None:
    import mxnet as mx  # servers and the scheduler serve inside this import

    store = mx.kv.create("dist_sync")
    store.init(0, mx.nd.zeros(8))

    def exchange() -> None:
        store.push(0, mx.nd.ones(8))
        found = mx.nd.zeros(8)
        store.pull(0, out=found)
        found.wait_to_read()

    steps(exchange, store.num_workers, mx.__version__)


def xgboost() -> None:
    import numpy
    import xgboost
    from xgboost import collective
    from xgboost.tracker import RabitTracker

    rank, processes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    tracker = RabitTracker(n_workers=processes, host_ip="0.0.0.0", port=port, sortby="task") if rank == 0 else None
    if tracker:
        tracker.start()
    eventually(lambda: socket.getaddrinfo(host, port))
    with collective.CommunicatorContext(
        dmlc_tracker_uri=host, dmlc_tracker_port=port, dmlc_retry=60, dmlc_task_id=f"{rank:05d}"
    ):
        steps(lambda: collective.allreduce(numpy.ones(8), collective.Op.SUM), processes, xgboost.__version__)
    if tracker:
        tracker.wait_for(timeout=60)


def lightgbm() -> None:
    import lightgbm
    import numpy

    rank = int(os.environ["RANK"])
    names = [(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])]
    names += [(host, os.environ["WORKER_PORT"]) for host in os.environ["WORKER_ADDRS"].split(",")]
    # LightGBM knows addresses only
    machines = eventually(lambda: [f"{socket.gethostbyname(host)}:{port}" for host, port in names])
    settings = {
        "objective": "binary", "num_leaves": 4, "num_threads": 1, "tree_learner": "data", "pre_partition": True,
        "num_machines": len(machines), "machines": ",".join(machines), "local_listen_port": int(names[rank][1]),
        "verbose": -1,
    }  # fmt: skip
    print(f"version {lightgbm.__version__}", flush=True)
    random = numpy.random.default_rng(rank)
    samples = random.random((200, 4))
    data = lightgbm.Dataset(samples, (samples[:, 0] > 0.5).astype(int), params=settings)
    told = [lambda env: step(env.iteration + 1, len(machines))]
    lightgbm.train(settings, data, STEPS, callbacks=told)


def paddle() -> None:
    import paddle

    paddle.distributed.init_parallel_env()
    processes = paddle.distributed.get_world_size()
    steps(lambda: paddle.distributed.all_reduce(paddle.ones([8])).wait(), processes, paddle.__version__)
    paddle.distributed.barrier()


def mpi() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    version = " ".join(MPI.Get_library_version().splitlines()[0].partition(",")[0].split())
    steps(lambda: world.allreduce(1), world.size, version)


if __name__ == "__main__":
    threading.Thread(target=obey, daemon=True).start()
    globals()[sys.argv[1]]()
