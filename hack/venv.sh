#!/usr/bin/env bash
# Creates the Python environment .venv: pinned packages, the engine, and the repository as the collection dljob.operator.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-python3}"

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
  echo "$python is not Python 3.11 to 3.13, which ansible-core 2.19 needs: install one and run make PYTHON=python3.11" >&2
  exit 1
fi
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  echo "$python cannot create virtual environments: install Debian's python3-venv, or a Python built with ensurepip" >&2
  exit 1
fi

started=$SECONDS
echo "==> Python environment (.venv), up to a minute the first time"
[ -x .venv/bin/python ] || "$python" -m venv .venv
# compiled when they are installed: where PYTHONDONTWRITEBYTECODE is set, as in containers, every process would compile them
PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONPATH=hack .venv/bin/python -m devtools.bootstrap
# link the collection into the folders in which Ansible, Python and mypy search for installed collections
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for root in "$site" .venv/collections; do # the second is for mypy, which does not accept site-packages as a source
  mkdir -p "$root/ansible_collections/dljob"
  ln -sfn "$PWD" "$root/ansible_collections/dljob/operator"
done
# install the collections of molecule's playbooks, at requirements.yml's versions
PYTHONPATH=hack .venv/bin/python -m devtools.collection dependencies
touch .venv/ready
echo "    done in $((SECONDS - started)) s"
