"""The first process of a simulated machine: starts its programs and collects its orphans.

Run as a file, never imported: `python -I -S local_init.py < SPEC`, so that it starts in milliseconds. SPEC is JSON:
`{"cwd", "state", "cause", "keep_orphans", "programs": [{"name", "argv", "env", "log", "comes_back"}]}`. The process
detaches itself before it starts anything, so that a caller killed meanwhile leaves a whole machine or none. The caller
gets one line, `{"pid", "started"}` or `{"error"}`. With `keep_orphans` the process is a subreaper: everything that a
program leaves behind (slurmstepd detaches itself from slurmd) stays below it in the process tree, and can be found,
frozen or killed as one machine.

A program that `comes_back` starts again a second after it failed (it ended by itself, not with 0), as systemd would
start it. SIGHUP starts again all programs that have ended; SIGKILL to the whole tree is the power switch. The file
`state` always holds the running processes: `{"cause", "init": {"pid", "started"}, "programs": {NAME: {"pid",
"started"}}}`. Its lock is held for life: a caller that dies while starting a machine, and asks again, cannot get the
machine twice.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
from typing import Any

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_SIGNALS = {signal.SIGCHLD, signal.SIGHUP}
_BACK_AFTER_S = 1.0
Programs = dict[str, dict[str, int]]


def _started(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return int(stat.read().rpartition(")")[2].split()[19])


def _start(program: dict[str, Any]) -> dict[str, int]:
    log = program["log"]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    argv = program["argv"]
    pid = os.posix_spawn(argv[0], argv, program["env"], file_actions=actions, setsid=True, setsigmask=[])
    return {"pid": pid, "started": _started(pid)}


def _me() -> dict[str, int]:
    return {"pid": os.getpid(), "started": _started(os.getpid())}


def _save(spec: dict[str, Any], running: Programs) -> None:
    path = spec["state"]
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"cause": spec["cause"], "init": _me(), "programs": running}, file)
    os.rename(path + ".new", path)


def _collect(running: Programs) -> set[str]:
    """Collect every child that has ended, our own or an orphan; return the programs that failed."""
    failed: set[str] = set()
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return failed
        if pid == 0:
            return failed
        for name in [name for name, process in running.items() if process["pid"] == pid]:
            del running[name]
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
                failed.add(name)


def _await_dying(running: Programs) -> None:
    """Wait for programs that are dying: one with many threads shows as dead before it can be collected."""
    for name, process in list(running.items()):
        with open(f"/proc/{process['pid']}/stat", encoding="utf-8", errors="replace") as stat:
            state = stat.read().rpartition(")")[2].split()[0]
        if state in "ZX":
            os.waitpid(process["pid"], 0)
            del running[name]


def _detach(spec: dict[str, Any]) -> None:
    os.setsid()
    os.chdir(spec["cwd"])
    fcntl.flock(os.open(spec["state"] + ".lock", os.O_RDWR | os.O_CREAT, 0o644), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if spec["keep_orphans"] and ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this kernel cannot make a subreaper")
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _close_standard(log: str) -> None:
    null, out = os.open("/dev/null", os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)


def _start_all(spec: dict[str, Any]) -> Programs:
    """Start all programs or none: after a failure the machine was never switched on, so that a retry may work."""
    for program in spec["programs"]:
        if not os.access(program["argv"][0], os.X_OK):
            raise OSError(f"cannot execute {program['argv'][0]}")
    running: Programs = {}
    _save(spec, running)
    try:
        for program in spec["programs"]:
            running[program["name"]] = _start(program)
    except OSError:
        for process in running.values():
            os.kill(process["pid"], signal.SIGKILL)
        os.unlink(spec["state"])
        raise
    _save(spec, running)
    return running


def _live(spec: dict[str, Any], answer: int) -> None:
    try:
        _detach(spec)
        running = _start_all(spec)
    except OSError as error:
        os.write(answer, json.dumps({"error": str(error)}).encode() + b"\n")
        os._exit(1)
    with contextlib.suppress(BrokenPipeError):  # the caller was killed: it finds the machine when it asks again
        os.write(answer, json.dumps(_me()).encode() + b"\n")
    os.close(answer)
    _close_standard(spec["state"] + ".log")
    _serve(spec, running)


def _serve(spec: dict[str, Any], running: Programs) -> None:
    back = {program["name"] for program in spec["programs"] if program["comes_back"]}
    due: set[str] = set()
    while True:
        told = signal.sigtimedwait(_SIGNALS, _BACK_AFTER_S) if due else signal.sigwaitinfo(_SIGNALS)
        failed = _collect(running) & back
        if told is not None and told.si_signo == signal.SIGHUP:
            _await_dying(running)
            _start_ended(spec, running, {program["name"] for program in spec["programs"]})
            due = set()
        elif told is None:
            _start_ended(spec, running, due)
            due = set()
        due |= failed
        _save(spec, running)


def _start_ended(spec: dict[str, Any], running: Programs, names: set[str]) -> None:
    for program in spec["programs"]:
        if program["name"] in names - running.keys():
            running[program["name"]] = _start(program)


def main() -> None:
    spec = json.load(sys.stdin)
    reader, writer = os.pipe()
    go, leave = os.pipe()
    if (between := os.fork()) == 0:
        if os.fork() == 0:
            os.close(reader)
            os.close(leave)
            if os.read(go, 1):  # empty if the caller has died: then there is no machine
                _live(spec, writer)
        os._exit(0)
    os.close(writer)
    os.waitpid(between, 0)
    os.write(leave, b"!")  # the machine's first process is now below none of ours
    with os.fdopen(reader) as answer:
        line = answer.readline()
    sys.stdout.write(line or json.dumps({"error": "the machine's first process died"}) + "\n")


if __name__ == "__main__":
    main()
