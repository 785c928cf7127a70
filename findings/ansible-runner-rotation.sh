#!/usr/bin/env bash
# ansible-runner 2.4.3: `--rotate-artifacts 1` and `2` fail beside the link that ansible-operator sets.
#
# ansible-operator (v1.42.3) calls `ansible-runner run DIR --rotate-artifacts N -i IDENT ...` for each reconcile, and after
# each run sets the link DIR/artifacts/latest to the run's folder. N is `maxRunnerArtifacts` of its watches file, or the
# annotation `ansible.sdk.operatorframework.io/max-runner-artifacts` of the object.
#
# Expected: ansible-runner keeps N runs, for every N of 1 or more, and every run ends with 0.
# Seen: its cleanup_artifact_dir counts every entry of the folder, so also the link, and calls shutil.rmtree on the oldest.
# os.path.getmtime follows the link, so with N=1 and N=2 the link is among the oldest from the second run on:
#   N=1  exit codes 0 1 1 1   OSError: Cannot call rmtree on a symbolic link
#   N=2  exit codes 0 1 1 1   OSError: Cannot call rmtree on a symbolic link
#   N=3  exit codes 0 0 0 0
# So ansible-operator never reconciles such an object again. Exits with 0 while that is so, with 1 once it has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet --disable-pip-version-check install ansible-runner==2.4.3 ansible-core==2.18.18
export PATH="$work/venv/bin:$PATH" HOME="$work"

as_described=true
for keep in 1 2 3; do
  folder="$work/keep-$keep"
  mkdir -p "$folder/project"
  cat >"$folder/project/play.yml" <<'PLAY'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks: [{ansible.builtin.debug: {msg: hello}}]
PLAY
  codes="" message=""
  for run in 1 2 3 4; do
    code=0
    ansible-runner run "$folder" -p play.yml --rotate-artifacts "$keep" -i "run$run" >"$work/output" 2>&1 || code=$?
    codes="$codes $code"
    [ "$code" = 0 ] || message=$(grep -o 'OSError: .*' "$work/output" | tail -1)
    ln -sfn "$folder/artifacts/run$run" "$folder/artifacts/latest" # as ansible-operator does
  done
  echo "N=$keep  exit codes$codes  $message"
  if [ "$keep" = 3 ]; then expected=" 0 0 0 0"; else expected=" 0 1 1 1"; fi
  [ "$codes" = "$expected" ] || as_described=false
done
if ! $as_described; then
  echo "the behaviour has changed"
  exit 1
fi
echo "as described"
