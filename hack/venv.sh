#!/usr/bin/env bash
# Creates the Python environment .venv: pinned packages, the engine, and the repository as the collection dljob.operator.
set -euo pipefail
cd "$(dirname "$0")/.."
# a distribution compiles its interpreter with profile-guided optimization, version managers usually do not, and the unit
# tests need a fifth more CPU time with one of theirs
if [ $# -eq 0 ]; then set -- /usr/bin/python3 python3; fi
python=$(hack/python.sh "$@")

started=$SECONDS
echo "==> Python environment (.venv) of $python, up to a minute the first time"
# also where an earlier run was interrupted before it had installed pip
.venv/bin/python -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear .venv
# compiled when they are installed: where PYTHONDONTWRITEBYTECODE is set, as in containers, every process would compile them
PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONPATH=hack .venv/bin/python -m devtools.build.bootstrap
# link the collection into the folders in which Ansible, Python and mypy search for installed collections
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for root in "$site" .venv/collections; do # the second is for mypy, which does not accept site-packages as a source
  mkdir -p "$root/ansible_collections/dljob"
  ln -sfn "$PWD" "$root/ansible_collections/dljob/operator"
done
# install the collections of molecule's playbooks, at requirements.yml's versions
PYTHONPATH=hack .venv/bin/python -m devtools.build.collection dependencies
touch .venv/ready
echo "    done in $((SECONDS - started)) s"
