#!/usr/bin/env bash
# Prints the first of the given interpreters that the environment can be made of.
set -euo pipefail

for python in "$@"; do
  if "$python" -c 'import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    echo "$python"
    exit
  fi
done
echo "no Python 3.11 to 3.13 with ensurepip, which ansible-core and virtual environments need (tried: $*):" \
  "install one, or Debian's python3-venv, and run make PYTHON=python3.11" >&2
exit 1
