#!/bin/sh
# JAX 0.4: the environment variable of the option for collectives on CPU is not read.
#
# Seen with the PyPI packages jax and jaxlib 0.4.38, and 0.10.2 beside them, on CPU (Linux x86-64, Python 3.11).
# Expected: JAX_CPU_COLLECTIVES_IMPLEMENTATION=gloo sets the option jax_cpu_collectives_implementation, as JAX_PLATFORMS
#   and other variables set theirs.
# Behaviour: 0.4.38 ignores the variable. Its processes meet in jax.distributed.initialize(), and the first computation
#   over the devices of both raises an error. jax.config.update() with the same name sets the option. In 0.10.2 gloo is the
#   default.
# Output seen:
#   0.4.38, variable: Multiprocess computations aren't implemented on the CPU backend.
#   0.4.38, jax.config.update: sum 3.0
#   0.10.2, neither: sum 3.0
#
# Takes about a minute on a free machine. Exits with 1 if the behaviour has changed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/old"
"$work/old/bin/python" -m pip install --quiet --disable-pip-version-check jax==0.4.38 jaxlib==0.4.38
python3 -m venv "$work/new"
"$work/new/bin/python" -m pip install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2

cat >"$work/train.py" <<'PYTHON'
import sys

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

port, rank, update = sys.argv[1:]
if update == "update":
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(rank))
mesh = Mesh(numpy.array(jax.devices()), ("data",))
mine = numpy.array([int(rank) + 1.0], dtype=numpy.float32)
numbers = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("data")), mine)
try:
    total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))(numbers)
    print("sum", float(total), flush=True)
except Exception as error:
    print(str(error).splitlines()[0].removeprefix("INVALID_ARGUMENT: "), flush=True)
PYTHON

said() { # PYTHON UPDATE VARIABLE...: what process 0 of two prints
    python="$work/$1/bin/python"
    update=$2
    shift 2
    port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    env JAX_PLATFORMS=cpu "$@" timeout 120 "$python" "$work/train.py" "$port" 1 "$update" >"$work/other" 2>&1 &
    env JAX_PLATFORMS=cpu "$@" timeout 120 "$python" "$work/train.py" "$port" 0 "$update" >"$work/log" 2>/dev/null || true
    wait
    tail -n 1 "$work/log"
}

failed=0
check() { # WHAT EXPECTED SEEN
    echo "$1: $3"
    [ "$2" = "$3" ] || { echo "CHANGED: expected $2"; failed=1; }
}
check "0.4.38, variable" "Multiprocess computations aren't implemented on the CPU backend." \
    "$(said old no JAX_CPU_COLLECTIVES_IMPLEMENTATION=gloo)"
check "0.4.38, jax.config.update" "sum 3.0" "$(said old update JAX_PLATFORMS=cpu)"
check "0.10.2, neither" "sum 3.0" "$(said new no JAX_PLATFORMS=cpu)"
exit $failed
