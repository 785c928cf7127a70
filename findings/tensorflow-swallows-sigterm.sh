#!/bin/sh
# TensorFlow: after MultiWorkerMirroredStrategy() a process does not end on SIGTERM.
#
# Seen with the PyPI package tensorflow-cpu 2.21.0 (Linux x86-64, Python 3.11).
# Expected: a program that installs no handler ends on SIGTERM.
# Behaviour: the strategy starts the preemption notifier of the coordination service, which takes SIGTERM. A program that
#   does not use tf.distribute.experimental.PreemptionCheckpointHandler goes on to its end, so Kubernetes waits for the
#   whole grace period and then kills the process (137). signal.signal() after the creation of the strategy changes that.
# Output seen:
#   without a strategy: 143 ready
#   with MultiWorkerMirroredStrategy: 0 end
#   with a handler after it: 143 ready
#
# Downloads 300 MB; takes two to four minutes. Exits with 1 if the behaviour has changed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0

cat >"$work/train.py" <<'PYTHON'
import json
import os
import signal
import sys
import time

what, index, ports = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
workers = [f"127.0.0.1:{port}" for port in ports]
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})

import tensorflow as tf

if what != "none":
    tf.distribute.MultiWorkerMirroredStrategy()
if what == "handler":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
print("ready", flush=True)
time.sleep(15)
print("end", flush=True)
PYTHON

failed=0
check() { # TEXT WHAT EXPECTED
    ports=$("$python" -c 'import socket
one, two = socket.socket(), socket.socket()
one.bind(("127.0.0.1", 0)), two.bind(("127.0.0.1", 0))
print(one.getsockname()[1], two.getsockname()[1])')
    # shellcheck disable=SC2086
    "$python" "$work/train.py" "$2" 0 $ports >"$work/log0" 2>&1 &
    other=$!
    # shellcheck disable=SC2086
    "$python" "$work/train.py" "$2" 1 $ports >"$work/log1" 2>&1 &
    process=$!
    for _ in $(seq 120); do
        grep -q '^ready' "$work/log0" && grep -q '^ready' "$work/log1" && break
        sleep 1
    done
    kill -TERM $process
    rc=0
    wait $process || rc=$?
    kill -KILL $other 2>/dev/null || true
    wait $other || true
    seen="$rc $(grep -e '^ready' -e '^end' "$work/log1" | tail -n 1)"
    echo "$1: $seen"
    [ "$seen" = "$3" ] || { echo "CHANGED: expected $3"; failed=1; }
}
check "without a strategy" none "143 ready"
check "with MultiWorkerMirroredStrategy" strategy "0 end"
check "with a handler after it" handler "143 ready"
exit $failed
