#!/bin/sh
# usage: engine.sh start | stop | status | run COMMAND [ARGUMENT...]
#   start    use the Docker engine that runs here; else start one, installing it first where apt-get can
#   stop     stop the engine that `start` started; any other is left alone
#   status   say which engine there is; fails when there is none
#   run      run COMMAND with an engine; one that had to be started for it is stopped when the last `run` ends
set -eu

record=/run/steward-engine          # "PID STARTTIME start|run": the dockerd that we started, and for what
lock=/run/steward-engine.lock       # held shared by every `run`
log=/var/log/steward-engine.log
start_limit_s=60
inotify=/proc/sys/fs/inotify/max_user_instances
inotify_needed=1024                 # systemd takes five in each machine of a bed; the usual 128 are those of 25 machines

say() { echo "engine: $*" >&2; }

answers() { docker info >/dev/null 2>&1; }

started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# The pid of our dockerd, if that very process still lives.
ours() {
    [ -r "$record" ] || return 1
    read -r pid started _ <"$record"
    [ "$(started_at "$pid")" = "$started" ] || return 1
    echo "$pid"
}

need_root() {
    [ "$(id -u)" -eq 0 ] && return
    say "no Docker engine answers, and $1 needs root: run this as root or with sudo, or start Docker yourself"
    exit 1
}

install_engine() {
    command -v dockerd >/dev/null && command -v docker >/dev/null && command -v debootstrap >/dev/null && return
    need_root "installing one"
    if ! command -v apt-get >/dev/null; then
        say "dockerd, docker or debootstrap is missing, and there is no apt-get to install it: install Docker, then try again"
        exit 1
    fi
    say "installing docker.io and debootstrap"
    apt-get update -qq
    # Debian 13 ships the client and BuildKit's front end apart.
    extra=
    for package in docker-cli docker-buildx; do
        if apt-cache show "$package" >/dev/null 2>&1; then extra="$extra $package"; fi
    done
    # shellcheck disable=SC2086  # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io debootstrap $extra >/dev/null
}

await_answer() {
    deadline=$(($(date +%s) + start_limit_s))
    until answers; do
        if [ "$(date +%s)" -ge "$deadline" ] || ! "$@"; then
            return 1
        fi
        sleep 0.2
    done
}

# Put back by stop.
allow_many_machines() {
    before=$(cat "$inotify")
    [ "$before" -lt "$inotify_needed" ] || return 0
    if echo "$inotify_needed" 2>/dev/null >"$inotify"; then
        echo "$before" >"$record.inotify"
    else
        say "cannot raise fs.inotify.max_user_instances ($before): more than $((before / 5)) machines at once do not boot"
    fi
}

# A dockerd that was killed leaves its pid file, one that is about to end still has it: either keeps another from starting.
clear_pid_file() {
    waited=0
    while [ "$(cat "/proc/$(cat /var/run/docker.pid 2>/dev/null)/comm" 2>/dev/null)" = dockerd ]; do
        if answers || [ "$waited" -ge 300 ]; then return; fi
        waited=$((waited + 1))
        sleep 0.1
    done
    rm -f /var/run/docker.pid
}

# start start|run
start() {
    answers && return
    install_engine
    answers && return       # the package may have started it
    need_root "starting one"
    if [ -d /run/systemd/system ]; then
        systemctl start docker
        await_answer true && return
        say "docker.service does not answer: look at 'systemctl status docker'"
        exit 1
    fi
    clear_pid_file
    answers && return
    allow_many_machines
    setsid dockerd </dev/null >"$log" 2>&1 9>&- &
    pid=$!
    echo "$pid $(started_at "$pid") $1" >"$record"
    if ! await_answer kill -0 "$pid"; then
        tail -n 5 "$log" >&2
        say "dockerd does not come up (its last lines above; all of them in $log)"
        say "it needs root with most capabilities, cgroups in /sys/fs/cgroup, iptables and overlayfs"
        stop
        exit 1
    fi
    say "started (pid $pid, log $log)"
}

stop() {
    if ! pid=$(ours); then
        rm -f "$record"
        return 0
    fi
    kill "$pid"
    waited=0
    while ours >/dev/null; do
        waited=$((waited + 1))
        [ "$waited" -ne 300 ] || kill -KILL "$pid"
        sleep 0.1
    done
    if [ -r "$record.inotify" ]; then cat "$record.inotify" >"$inotify"; fi
    rm -f "$record" "$record.inotify"
    say "stopped"
}

status() {
    if ! answers; then
        say "no Docker engine answers"
        return 1
    fi
    docker version --format 'engine: Docker {{.Server.Version}}' >&2
    if pid=$(ours); then say "started by us, pid $pid"; fi
}

# Stops what a `run` started, once nothing else runs on it.
stop_after_last() {
    flock -u 9
    if flock -n -x 9 && grep -q ' run$' "$record" 2>/dev/null; then
        stop
    fi
}

run() {
    if answers && ! ours >/dev/null; then
        exec "$@"           # an engine that we did not start: no business of ours
    fi
    need_root "starting one"
    exec 9>"$lock"
    flock -s 9
    trap stop_after_last EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    start run
    code=0
    "$@" 9>&- || code=$?
    exit "$code"
}

case ${1:-} in
    start) start start ;;
    stop | status) "$1" ;;
    run)
        shift
        [ $# -gt 0 ] || { say "run what?"; exit 2; }
        run "$@"
        ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
