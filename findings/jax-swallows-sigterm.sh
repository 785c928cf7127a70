#!/bin/sh
# JAX: after jax.distributed.initialize() a process does not end on SIGTERM.
#
# Seen with the PyPI packages jax and jaxlib 0.10.2 on CPU (Linux x86-64, Python 3.11).
# Expected: a program that installs no handler ends on SIGTERM, as it does before initialize().
# Behaviour: the preemption service, which is on by default, takes SIGTERM as a notice for programs that call
#   jax.experimental.multihost_utils.reached_preemption_sync_point(). Others go on to their end, so Kubernetes waits for the
#   whole grace period and then kills the process (137). With JAX_ENABLE_PREEMPTION_SERVICE=false SIGTERM ends the process
#   (143), and reached_preemption_sync_point() raises a RuntimeError.
# Output seen:
#   by default: the process ended with 0: no preemption yet
#   with JAX_ENABLE_PREEMPTION_SERVICE=false: the process ended with 143: RuntimeError: Preemption sync manager has not been initialized.
# The setting is new in 0.8.3; jax 0.8.0 and older have no such switch (by their sources).
#
# Takes about a minute on a free machine. Exits with 1 if the behaviour has changed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2

cat >"$work/train.py" <<'PYTHON'
import sys
import time

import jax
from jax.experimental.multihost_utils import reached_preemption_sync_point

jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(f"127.0.0.1:{sys.argv[1]}", num_processes=1, process_id=0)
try:
    reached = reached_preemption_sync_point(0)
    print("preemption" if reached else "no preemption yet", flush=True)
except RuntimeError as error:
    print("RuntimeError:", str(error).split(". ")[0] + ".", flush=True)
print("ready", flush=True)
time.sleep(8)
PYTHON

ended() { # VARIABLE...: the exit code of a process that gets SIGTERM, and what it printed first
    port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    env "$@" "$python" "$work/train.py" "$port" >"$work/log" 2>&1 &
    process=$!
    for _ in $(seq 240); do
        grep -q '^ready' "$work/log" && break
        sleep 1
    done
    sleep 1
    kill -TERM $process
    rc=0
    wait $process || rc=$?
    echo "$rc: $(grep -m 1 preemption "$work/log" || grep -m 1 RuntimeError "$work/log" || tail -n 1 "$work/log")"
}

failed=0
check() { # WHAT EXPECTED SEEN
    echo "$1: the process ended with $3"
    [ "$2" = "$3" ] || { echo "CHANGED: expected $2"; failed=1; }
}
check "by default" "0: no preemption yet" "$(ended JAX_PLATFORMS=cpu)"
check "with JAX_ENABLE_PREEMPTION_SERVICE=false" "143: RuntimeError: Preemption sync manager has not been initialized." \
    "$(ended JAX_PLATFORMS=cpu JAX_ENABLE_PREEMPTION_SERVICE=false)"
exit $failed
