"""What one ordinary user does at once to take a node away from everybody: run as that user, on the local bed.

    hostile_user.py SECONDS PORT OTHERS_JOB SOCKET...

It holds more connections to slurmd's port than it serves, says to the agents' sockets what their head would refuse,
claims another user's job, and asks about it as fast as it may.
"""

import contextlib
import itertools
import os
import resource
import socket
import sys
import threading
import time

CONNECTIONS = 700
ASKERS = 16
WORDS = (
    "opted job=0 uid={uid} mode=1 restart=0 batch=1",
    "opted job=4294967296 uid={uid} mode=1 restart=0",
    "opted job={job} uid={uid} mode=0 restart=0",
    "opted job={job} uid={uid} mode=any:1000 restart=1 elastic=4096:1",
    "log job={job} restart=0 size=9999999999999999999 out=/etc/shadow",
    "ended job={job} restart=0 step=0 log=1:999999999999999999:0",
    "exit job={job} step=0 restart=0 task=0 status=9",
    "deep run=x here=n1 check=gpu.gemm node=n1 outcome=failed value=nan seconds=inf",
)


def hold(port: int, until: float) -> None:
    held: list[socket.socket] = []
    while time.time() < until:
        while len(held) < CONNECTIONS:
            one = socket.socket()
            one.settimeout(0.5)
            try:
                one.connect(("127.0.0.1", port))
            except OSError:
                one.close()
                break
            held.append(one)
        held = [one for one in held if is_open(one)]
        time.sleep(0.05)


def is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        try:
            if one.recv(4096):
                return True
        except BlockingIOError:
            return True
        except OSError:
            pass
        one.close()
        return False
    return True


def say(path: str, line: str) -> None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
        one.settimeout(6)
        one.connect(path)
        one.sendall(f"steward/1 {line}\n".encode())
        while one.recv(4096):
            pass


def flood(path: str, job: int, uid: int, until: float, who: int) -> None:
    for number in itertools.count():
        if time.time() >= until:
            return
        ask = f"ask kind=step job={job} step=x{who}.{number} uid={uid} mode=any:5 attempt=1 restart=0 status=256"
        say(path, ask)
        say(path, WORDS[number % len(WORDS)].format(job=job, uid=uid))


def main() -> None:
    seconds, port, job, *sockets = sys.argv[1:]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most), most))
    until, uid = time.time() + float(seconds), os.getuid()
    work = [threading.Thread(target=hold, args=(int(port), until))]
    for path in sockets:
        work += [threading.Thread(target=flood, args=(path, int(job), uid, until, who)) for who in range(ASKERS)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    print("done", flush=True)


if __name__ == "__main__":
    main()
