"""A standard TensorFlow gRPC server: what a parameter server runs that has no program of its own.

    python grpc_tensorflow_server.py --cluster_spec='master|m:2222,ps|p0:2222;p1:2222' --job_name=ps --task_id=0

It takes the arguments of the server program that came with TensorFlow 1, and holds variables until it is ended. It runs
in whatever image the job names: TensorFlow 1 or 2, hence no syntax that Python 2 does not know.
"""

from __future__ import print_function

import argparse
import fcntl
import os
import signal
import sys
import threading
import traceback


def parse_cluster(text):
    """``job|host:port;host:port,job|...`` to a dictionary of lists."""
    cluster = {}
    for job in text.split(","):
        name, found, members = job.partition("|")
        if not (name and found):
            raise argparse.ArgumentTypeError("%r is not a list of JOB|HOST:PORT;HOST:PORT" % text)
        cluster[name] = [member for member in members.split(";") if member]
    return cluster


def serve(options):
    """Serve for ever; a server that cannot end with status 1 instead of leaving a process that does nothing."""
    try:
        import tensorflow as tf  # takes seconds, in which signals count already

        server_class = getattr(getattr(tf, "distribute", None), "Server", None) or tf.train.Server
        server = server_class(options.cluster_spec, job_name=options.job_name, task_index=options.task_id)
        print("TensorFlow %s serves as %s %d" % (tf.__version__, options.job_name, options.task_id))
        sys.stdout.flush()
        server.join()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cluster_spec", type=parse_cluster, required=True)
    parser.add_argument("--job_name", required=True)
    parser.add_argument("--task_id", type=int, required=True)
    options = parser.parse_args()
    # a container's first process has no default action for a signal, and a handler would wait for join() to return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: os._exit(128 + received))
    # and a handler waits for this thread to run: signal.pause() would sleep over a signal that comes just before it
    wake_up, woken = os.pipe()
    fcntl.fcntl(woken, fcntl.F_SETFL, os.O_NONBLOCK)
    signal.set_wakeup_fd(woken)
    server = threading.Thread(target=serve, args=(options,))
    server.daemon = True
    server.start()
    while True:
        os.read(wake_up, 1)


if __name__ == "__main__":
    main()
