#!/bin/sh
# PaddlePaddle: the launchers of a job get other ranks at each start.
#
# Seen with the PyPI package paddlepaddle 3.3.1 (Linux x86-64, Python 3.11).
# Expected: the launcher whose address is PADDLE_MASTER, or the first to come, is rank 0, and the same each time.
# Behaviour: each launcher chooses a random name, and the order of the names is that of the ranks. With PADDLE_RANK each has
#   the rank that it says.
# Output seen (ranks of three launchers in each of six runs, an example):
#   without PADDLE_RANK: 201 012 201 012 102 201
#   with PADDLE_RANK: 012 012 012 012 012 012
#
# Takes two to four minutes. Six equal orders by chance are improbable. Exits with 1 if the behaviour has changed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check paddlepaddle==3.3.1 setuptools==80.9.0

echo 'import os; print("rank", os.environ["PADDLE_TRAINER_ID"])' >"$work/train.py"

ranks() { # whether the launchers know theirs
    port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    rm -rf "$work/log"
    pids=
    for node in 0 1 2; do
        if [ "$1" = known ]; then export PADDLE_RANK=$node; fi
        POD_IP=127.0.0.1 PADDLE_MASTER=127.0.0.1:$port PADDLE_NNODES=3 PADDLE_JOB_ID=job \
            timeout 120 "$python" -m paddle.distributed.launch --log_dir "$work/log/$node" "$work/train.py" \
            >"$work/launcher$node" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || { cat "$work"/launcher*; exit 1; }
    done
    for node in 0 1 2; do
        sed -n 's/^rank \([0-9]*\)$/\1/p' "$work/log/$node"/workerlog.*
    done | tr -d '\n'
}

runs() { # as above
    seen=
    for _ in 1 2 3 4 5 6; do
        seen="$seen $(ranks "$1")"
    done
    echo "$seen"
}

without=$(runs unknown)
echo "without PADDLE_RANK:$without"
with=$(runs known)
echo "with PADDLE_RANK:$with"
same=" 012 012 012 012 012 012"
[ "$without" != "$same" ] && [ "$with" = "$same" ] || { echo "CHANGED"; exit 1; }
