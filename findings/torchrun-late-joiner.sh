#!/bin/sh
# torchrun: a node that joins a running elastic job with the c10d rendezvous finds no address of the shared store.
#
# Seen with the PyPI package torch 2.15.0 (Linux x86-64, Python 3.11). By their sources, 2.6.0, 2.7.0 and 2.8.0 do the same;
#   2.5.0 takes the address of the rendezvous' own store, and 2.4.1 shares no store.
# Expected: as the documentation of torchrun's elastic launch says, the running agents restart their processes, and all
#   three train.
# Behaviour: the running agents keep the address from their first rendezvous and publish it in no later round. The new
#   agent waits for it, by default 60 s, and ends with exit code 1; those that wait for it end with an error too.
#   With TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, or if the new agent becomes rank 0, the address is published in each round.
# Output seen (with read_timeout=15):
#   without the variable: third agent: joined=0 exit=1 DistStoreError: wait timeout after 15000ms, keys:
#     /torch.rendezvous.none.1/MASTER_ADDR; the others ended with 1 and 1
#   with the variable: third agent: joined=1 exit=0 no DistStoreError; the others ended with 0 and 0
#
# The wheel needs CUDA's libraries to be loaded, 3 GB, of which a CPU calls none: `gcc` and `readelf` make empty ones. Needs
# Python 3.11 to 3.13, gcc and binutils, 4 GB below $TMPDIR, and two to five minutes. Exits with 1 if the behaviour has
# changed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps torch==2.15.0 \
    nvidia-cuda-runtime==13.2.75 typing_extensions==4.15.0 sympy==1.14.0 mpmath==1.3.0 networkx==3.5 jinja2==3.1.6 \
    markupsafe==3.0.3 filelock==3.20.0 fsspec==2025.10.0

"$python" - <<'PYTHON'
import pathlib
import re
import subprocess
import sysconfig

lib = pathlib.Path(sysconfig.get_path("platlib")) / "torch/lib"
own = {path.name for path in lib.iterdir()}
versions, symbols = {}, {}  # of each library of CUDA, and of each version
for so in [*lib.glob("*.so"), *lib.parent.glob("_C*.so")]:
    text = subprocess.run(["readelf", "-dVW", "--dyn-syms", so], capture_output=True, text=True, check=True).stdout
    for name in re.findall(r"NEEDED.*\[(lib(?:cu|nv|nccl)[^\]]*)\]", text):
        versions.setdefault(name, set())
    for name, found in re.findall(r"File: (\S+)  Cnt: \d+\n((?:.*Name: .*\n)+)", text):
        if re.match("lib(cu|nv|nccl)", name):
            versions.setdefault(name, set()).update(re.findall(r"Name: (\S+)", found))
    for name, version in re.findall(r"UND (\w+)(@\S+)?", text):
        if version or re.match("nccl|cu[A-Zs]|nv", name):
            symbols.setdefault(version[1:], set()).add(name)
for name in sorted(set(versions) - own):
    if "cudart" in name:
        continue
    blocks = {v: sorted(symbols.get(v, ())) for v in versions[name] or [""]}
    script = lib / "version.map"
    script.write_text("".join(f"{v} {{ global: {' '.join(f'{s};' for s in found)} }};\n" for v, found in blocks.items() if v) or "{ global: *; };\n")
    source = "".join(f"int {s}(void) {{ return 1; }}\n" for found in blocks.values() for s in found)
    command = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,--version-script={script}", f"-Wl,-soname={name}", "-x", "c", "-"]
    subprocess.run([*command, "-o", lib / name], input=source, text=True, check=True)
PYTHON

cat >"$work/train.py" <<'PYTHON'
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
print("trains in a world of", dist.get_world_size(), flush=True)
stop = torch.zeros(1)
while not stop.item():  # all see the stop in the same step
    stop = torch.tensor([float(os.path.exists(os.environ["STOP"]))])
    dist.all_reduce(stop)
    time.sleep(0.2)
dist.destroy_process_group()
PYTHON

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cd "$work"
export PET_NNODES=2:3 PET_NPROC_PER_NODE=1 PET_RDZV_BACKEND=c10d PET_LOCAL_ADDR=127.0.0.1 PET_RDZV_ENDPOINT="127.0.0.1:$port"
export PET_RDZV_CONF=last_call_timeout=2,read_timeout=15 PET_MAX_RESTARTS=0 OMP_NUM_THREADS=1 STOP="$work/stop"

agent() {
    rc=0
    nice -n 10 timeout -k 5 400 "$python" -W ignore -m torch.distributed.run train.py >"$1.log" 2>&1 || rc=$?
    echo "$rc" >"$1.rc"
}

until_all() { # TEXT FILE...: until each file has the text, or every agent has ended
    text=$1 n=0
    shift
    while [ "$(cat "$@" 2>/dev/null | grep -c "$text")" -lt $# ] && [ $n -lt 300 ] && [ "$(ls ./*.rc 2>/dev/null | wc -l)" -lt 3 ]; do
        sleep 1
        n=$((n + 1))
    done
}

late() { # VARIABLE...: what the third agent does that joins two
    rm -f ./*.log ./*.rc "$STOP"
    [ $# -eq 0 ] || export "$@"
    agent a & first=$!
    agent b & second=$!
    until_all "a world of 2" a.log b.log
    # by address, process and host: the new agent must not become rank 0, and its process is the latest
    agent c & third=$!
    until_all "a world of 3" a.log b.log c.log
    touch "$STOP"
    wait $first $second $third
    joined=$(grep -h -c "a world of 3" c.log || true)
    # at the same time the others wait for the new agent, and whichever fails first ends the store for all
    error=$(grep -h -o "DistStoreError: wait timeout after .*" c.log a.log b.log | head -n 1 || true)
    echo "third agent: joined=$joined exit=$(cat c.rc) ${error:-no DistStoreError}; the others ended with $(cat a.rc) and $(cat b.rc)"
}

seen=$(late)
echo "without the variable: $seen"
with=$(late TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1)
echo "with the variable: $with"
case $seen in *"joined=0 exit=1 DistStoreError"*) ;; *) echo "CHANGED: the third agent joins"; exit 1 ;; esac
case $with in *"joined=1 exit=0 no DistStoreError"*) ;; *) echo "CHANGED: the third agent does not join"; exit 1 ;; esac
echo "as recorded"
