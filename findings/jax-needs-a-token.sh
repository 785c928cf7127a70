#!/bin/sh
# JAX: jax.distributed.initialize() fails in a pod without a mounted token, if the package kubernetes is installed.
#
# Seen with the PyPI packages jax and jaxlib 0.10.2 and kubernetes 37.0.2 on CPU (Linux x86-64, Python 3.11).
# Expected: with the address, the number and the rank as arguments, nothing has to be detected.
# Behaviour: initialize() looks for a cluster nevertheless, for the devices of the process. Where KUBERNETES_SERVICE_HOST
#   is set it reads the token of the pod's service account, and a pod with automountServiceAccountToken: false has none.
#   Without the package it only warns; with cluster_detection_method="deactivate" it looks for none.
# Output seen:
#   by default: 1 kubernetes.config.config_exception.ConfigException: Service token file does not exist.
#   with cluster_detection_method=deactivate: 0 trains
#   without the package: 0 trains
#
# Takes about two minutes. Exits with 1 if the behaviour has changed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2 kubernetes==37.0.2

cat >"$work/train.py" <<'PYTHON'
import socket
import sys

import jax

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
more = {"cluster_detection_method": sys.argv[1]} if sys.argv[1:] else {}
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=1, process_id=0, **more)
print("trains")
PYTHON

failed=0
check() { # WHAT EXPECTED [ARGUMENT]
    what=$1 expected=$2
    shift 2
    rc=0
    JAX_PLATFORMS=cpu KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=443 \
        "$python" "$work/train.py" "$@" >"$work/log" 2>&1 || rc=$?
    seen="$rc $(tail -n 1 "$work/log")"
    echo "$what: $seen"
    [ "$seen" = "$expected" ] || { echo "CHANGED: expected $expected"; failed=1; }
}
check "by default" "1 kubernetes.config.config_exception.ConfigException: Service token file does not exist."
check "with cluster_detection_method=deactivate" "0 trains" deactivate
"$python" -m pip uninstall --quiet --yes --disable-pip-version-check kubernetes
check "without the package" "0 trains"
exit $failed
