#!/usr/bin/env bash
# Runs a program of the environment, as the hooks of .pre-commit-config.yaml need it.
set -euo pipefail
export PATH="$PWD/.venv/bin:$PATH" PYTHONPATH=hack:src:client:client/src
# outside the tree, so that a new clone need not check again what has not changed
export MYPY_CACHE_DIR="${DLJOB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dljob-operator}/mypy"
if [ "$1" = mypy ]; then  # two of them would mix their caches
  mkdir -p "$MYPY_CACHE_DIR"
  set -- flock "$MYPY_CACHE_DIR.lock" "$@"
fi
exec "$@"
