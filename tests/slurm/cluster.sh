# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# cluster.sh -- a real Slurm on this machine alone, sourced by tests: munged, slurmctld and two slurmd, with keys, ports and directories of their own, so
# that neither a Slurm that is installed here nor another copy of the test notices. Each node has its own host name and /dev/shm (UTS and mount
# namespaces): Open MPI names its shared memory after the host, and two nodes of one name would overwrite each other's.
#   cluster_why_not      prints why there can be none here; silent if there can
#   cluster_start        starts it, with logs in the current directory, and exports SLURM_CONF; the reason on failure in cluster_error
#   cluster_stop         ends jobs and daemons and removes all traces; may be called at any time
#   $cluster             its directory, under the system's temporary one, where munged trusts all parents

cluster= cluster_logs= cluster_pids= cluster_error=
cluster_nodes=2

cluster_why_not() {
    for program in munged slurmctld slurmd srun sbatch scontrol unshare; do
        PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null 2>&1 || { echo "no $program (Debian slurm-wlm, munge)" && return; }
    done
    [ "$(id -u)" -eq 0 ] || { echo "not root: Slurm's daemons start others' jobs" && return; }
    unshare -m -u true 2>/dev/null || echo "no namespaces of one's own are allowed here"
}

# The first of `n` neighbouring ports that nobody listens at
cluster_ports() {
    { cat /proc/net/tcp /proc/net/tcp6; } 2>/dev/null | awk -v n="$1" -v at=$((20000 + $$ % 9000)) '
        { split($2, part, ":"); taken[part[2]] = 1 }
        END { for (; ; at++) { for (i = 0; i < n && !(sprintf("%04X", at + i) in taken); i++); if (i == n) { print at; exit } } }'
}

# Each node has all cores of the machine, and two where there is one. Tasks are bound where this process is not.
cluster_write_conf() {
    port=$(cluster_ports $((cluster_nodes + 1))) cores=$(nproc --all) host=$(hostname -s) binds=affinity
    [ "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)" -eq "$cores" ] && [ "$cores" -gt 1 ] || binds=none
    [ "$cores" -gt 1 ] || cores=2
    cat >"$cluster/slurm.conf" <<CONF
ClusterName=halo
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.sock
CredType=cred/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/$binds
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
KillWait=5
MessageTimeout=30
StateSaveLocation=$cluster/state
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmctldLogFile=$cluster_logs/slurmctld.log
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmdSpoolDir=$cluster/spool.%n
SlurmdLogFile=$cluster_logs/slurmd.%n.log
TmpFS=$cluster/tmp.%n
CONF
    i=0
    while [ $i -lt $cluster_nodes ]; do
        echo "NodeName=n$i NodeHostname=n$i NodeAddr=127.0.0.1 Port=$((port + 1 + i)) CPUs=$cores Boards=1 SocketsPerBoard=1 CoresPerSocket=$cores ThreadsPerCore=1 Gres=gpu:1"
        i=$((i + 1))
    done >>"$cluster/slurm.conf"
    echo "PartitionName=main Nodes=ALL Default=YES OverSubscribe=FORCE:16 State=UP" >>"$cluster/slurm.conf"
    echo "Name=gpu File=/dev/null" >"$cluster/gres.conf" # counted, never touched
}

cluster_daemon() {
    "$@" >>"$cluster_logs/daemons.log" 2>&1 &
    cluster_pids="$! $cluster_pids"
}

cluster_idle() { scontrol -o show node 2>/dev/null | grep -c 'State=IDLE .*SlurmdStartTime=[0-9]'; }

cluster_start() {
    cluster_logs=$PWD
    cluster=$(mktemp -d "${TMPDIR:-/tmp}/halo-slurm.XXXXXX") || return 1
    chmod 755 "$cluster"
    PATH=$PATH:/usr/sbin:/sbin
    SLURM_CONF=$cluster/slurm.conf
    export PATH SLURM_CONF
    cluster_write_conf
    (umask 077 && head -c 128 /dev/urandom >"$cluster/munge.key")
    cluster_daemon munged --foreground --key-file="$cluster/munge.key" --socket="$cluster/munge.sock" --pid-file="$cluster/munged.pid" \
        --log-file="$cluster_logs/munged.log" --seed-file="$cluster/munged.seed"
    for i in 1 2 3 4 5 6 7 8 9 10; do [ -S "$cluster/munge.sock" ] && break || sleep 0.2; done
    mkdir "$cluster/state"
    cluster_daemon slurmctld -D
    i=0
    while [ $i -lt $cluster_nodes ]; do
        mkdir "$cluster/spool.n$i" "$cluster/tmp.n$i"
        # shellcheck disable=SC2016
        cluster_daemon unshare -m -u sh -c 'hostname "$1" && mount -t tmpfs tmpfs /dev/shm && exec slurmd -D -N "$1"' sh "n$i"
        i=$((i + 1))
    done
    for i in $(seq 100); do
        [ "$(cluster_idle)" = $cluster_nodes ] && return 0
        sleep 0.2
    done
    cluster_error=$(cat "$cluster_logs"/*.log 2>/dev/null | grep -E 'error|fatal' | head -n 3 | tr '\n' ' ')
    return 1
}

# Whatever still runs with our configuration in its environment: steps whose daemon went first
cluster_left() {
    env -u SLURM_CONF grep -lzxF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ 2>/dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,'
}

cluster_stop() {
    [ -n "$cluster" ] || return 0
    timeout 5 scancel -u root 2>/dev/null
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] && sleep 0.5 || break
    done
    # shellcheck disable=SC2086
    kill $cluster_pids 2>/dev/null
    for i in 1 2 3 4 5 6 7 8 9 10; do
        # shellcheck disable=SC2086
        kill -0 $cluster_pids 2>/dev/null && sleep 0.3 || break
    done
    # shellcheck disable=SC2046
    kill -9 $(cluster_left) 2>/dev/null
    wait
    rm -rf "$cluster"
    cluster=
}
