#!/usr/bin/env python3
"""An example of a site's program for `[provider.command]`: command-provider.py DIRECTORY launch|terminate|reboot|list

It keeps one small file a machine in DIRECTORY and starts nothing: put what makes your machines where it says HERE.
Everything it needs is in Python itself. Steward's contract suite runs on it, see docs/providers.md.
"""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

CAPACITY = "capacity"  # a file of this name holds how many machines may exist; without it there is no limit


def every(store):
    return [json.loads(path.read_text()) for path in sorted(store.glob("*.json"))]


def save(store, machine):
    """Written beside and renamed: whoever reads sees the old file or the new one, never half of one."""
    new = store / f".{machine['id']}.new"
    new.write_text(json.dumps(machine))
    new.replace(store / f"{machine['id']}.json")
    return machine


def launch(store, asked):
    slot, token, machines = asked["slot"], asked["token"], every(store)
    for machine in machines:
        if machine["token"] == token:  # asked again: the same machine, never a second one
            return {"instance": machine}
    limit = store / CAPACITY
    if limit.exists() and len(machines) >= int(limit.read_text()):
        return {"error": "capacity", "text": f"{len(machines)} machines are all there are"}
    made = {
        "id": f"vm-{os.urandom(6).hex()}",
        "node": slot["node"],
        "state": "running",
        "token": token,
        "launched": time.time(),
        "type": (slot["types"] or [""])[0],
        "reboots": [],
    }
    # HERE: make the machine, with the id written where its agent finds it (agent.instance_id_file).
    return {"instance": save(store, made)}


def terminate(store, asked):
    # HERE: unmake the machine. One that is not there is success.
    for machine in every(store):
        if machine["id"] == asked["instance"]:
            (store / f"{machine['id']}.json").unlink()
    return {}


def reboot(store, asked):
    for machine in every(store):
        if machine["id"] != asked["instance"]:
            continue
        if asked["token"] not in machine["reboots"]:
            # HERE: reboot the machine.
            save(store, machine | {"reboots": [*machine["reboots"], asked["token"]]})
        return {}
    return {"error": "permanent", "text": f"there is no machine {asked['instance']}"}


def list_all(store, asked):
    return {"instances": every(store)}


ACTIONS = {"launch": launch, "terminate": terminate, "reboot": reboot, "list": list_all}


def main():
    store, action = Path(sys.argv[1]), sys.argv[2]
    store.mkdir(parents=True, exist_ok=True)
    with (store / "lock").open("w") as lock:  # several may run at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        json.dump(ACTIONS[action](store, json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
