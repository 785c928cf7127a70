#!/bin/sh
# XGBoost: a tracker that has lost a worker cannot be started again at its port for about a minute.
#
# Seen with the PyPI package xgboost 3.2.0 (Linux x86-64, Python 3.11).
# Expected: a server that is started again takes its port at once, as with SO_REUSEADDR.
# Behaviour: the tracker closes the connections of its workers first, so they stay in the state TIME-WAIT at its port for
#   60 s, and RabitTracker(port=...) fails until then: "Failed to bind socket. system error:Address already in use". A
#   master that the kubelet restarts in place ends with 1 several times.
# Output seen:
#   at once: 1 Address already in use
#   20 s later: 1 Address already in use
#   80 s later: 0 listens
#
# Takes about two minutes. Exits with 1 if the behaviour has changed.
set -eu

work=$(mktemp -d)
master='' worker=''
trap 'kill -KILL $master $worker 2>/dev/null || true; rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps xgboost==3.2.0 numpy==2.3.5 scipy==1.16.3

cat >"$work/process.py" <<'PYTHON'
"""A tracker, with worker 0 of 2 ("master") or alone ("tracker"), or the other worker ("worker")."""

import sys
import time

from xgboost.collective import CommunicatorContext
from xgboost.tracker import RabitTracker

role, port = sys.argv[1], int(sys.argv[2])
if role != "worker":
    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1", port=port)
    tracker.start()
    print("listens", flush=True)
if role != "tracker":
    with CommunicatorContext(dmlc_tracker_uri="127.0.0.1", dmlc_tracker_port=port, dmlc_task_id=role):
        print("joined", flush=True)
        time.sleep(60)
PYTHON

wait_for() { # TEXT FILE
    for _ in $(seq 60); do
        grep -q "$1" "$2" && return
        sleep 1
    done
    cat "$2"
    exit 1
}
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$python" "$work/process.py" master "$port" >"$work/master" 2>&1 &
master=$!
wait_for listens "$work/master"
"$python" "$work/process.py" worker "$port" >"$work/worker" 2>&1 &
worker=$!
wait_for joined "$work/worker"
wait_for joined "$work/master"
kill -KILL $worker
sleep 2
kill -KILL $master
wait $worker || true
wait $master || true
master='' worker=''

failed=0
check() { # WHEN EXPECTED
    rc=0
    "$python" "$work/process.py" tracker "$port" >"$work/log" 2>&1 || rc=$?
    seen="$rc $(grep -m 1 -o -e listens -e 'Address already in use' "$work/log" || tail -n 1 "$work/log")"
    echo "$1: $seen"
    [ "$seen" = "$2" ] || { echo "CHANGED: expected $2"; failed=1; }
}
check "at once" "1 Address already in use"
sleep 20
check "20 s later" "1 Address already in use"
sleep 60
check "80 s later" "0 listens"
exit $failed
