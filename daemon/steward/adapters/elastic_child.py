"""The program that does what an elastic run needs in its user's name: `python -I -m ... WHAT UID JOB [JSON]`.

It begins as root. What users can trace must not run where the agent runs: so it first joins the cgroup of the job's
own script, whose limits and end then hold for it too, and then becomes the user for good. The coordinator runs in this
process, out of its user's reach; sbatch and scancel are programs that the user could start there himself.
"""

import json
import os
import runpy
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from steward.adapters import job_activity
from steward.adapters.process import run
from steward.adapters.user_look import become
from steward.model.elastic import replica_of
from steward.model.ids import JobId

COMMAND_S = 30.0
_MAX_ENVIRON = 1 << 20
_MAX_SCRIPT = 16 << 20
_OWN = ("SLURM", "_SLURM", "STEWARD_", "PMI", "SPANK_")
"""Variables of the base's run, none of which is about the replica."""
_DROPPED = ("-W", "--wait", "--test-only", "--parsable")
"""Options of sbatch that are not about the job itself."""


def main(what: str, uid: int, job: JobId, asked: Mapping[str, str]) -> int:
    """Each raises OSError, ValueError or Failed (a Retryable) with what is wrong."""
    script = _script_of(job, uid)
    if what == "coordinate":
        _leave_starter()
    _join(script)
    become(uid)
    match what:
        case "coordinate":
            _coordinate(asked)
        case "submit":
            submit(script, job, asked)
        case "cancel":
            _cancel(job, asked["job"])
        case _:
            raise ValueError(what)
    return 0


def _script_of(job: JobId, uid: int) -> int:
    """The process of the base's script, or the oldest one that has its environment."""
    pids = sorted(pid for pid, _ in job_activity.processes({job: uid}) if os.stat(f"/proc/{pid}").st_uid == uid)
    found = next((pid for pid in pids if environ_of(pid).get("STEWARD_ELASTIC_ROLE") == "base"), None)
    if found is None:
        raise OSError(f"no process of job {job} is the script of a run's base")
    return found


def _leave_starter() -> None:
    """Who started this program waits for its first process only."""
    if os.fork():
        os._exit(0)
    os.setsid()
    with open(os.devnull, "r+b") as nothing:
        for number in range(3):
            os.dup2(nothing.fileno(), number)


def _join(pid: int) -> None:
    """Be where that process is; nothing where both are in the same place (no cgroups)."""
    if os.geteuid() != 0:
        return
    own, mounts = Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
    for folder in cgroup_folders(Path(f"/proc/{pid}/cgroup").read_text(), own, mounts):
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def cgroup_folders(theirs: str, own: str, mounts: str) -> list[Path]:
    """Where the cgroups of a process are that we are not in, from both's /proc/PID/cgroup and our mountinfo.

    What is mounted may be a part of the hierarchy only (in a container): its root is no part of the path then.
    Raises ValueError where a cgroup is in no mount.
    """
    folders = []
    for line in set(theirs.splitlines()) - set(own.splitlines()):
        number, controllers, place = line.split(":", 2)
        wanted = {"cgroup2"} if number == "0" else set(controllers.split(","))
        for fields in (mount.split() for mount in mounts.splitlines()):
            kind, options = fields[fields.index("-") + 1], set(fields[-1].split(","))
            if wanted <= ({kind} if kind == "cgroup2" else options if kind == "cgroup" else set()):
                root = "" if fields[3] == "/" else fields[3]
                if place == root or place.startswith(f"{root}/"):
                    folders.append(Path(fields[4]) / place.removeprefix(root).lstrip("/"))
                    break
        else:
            raise ValueError(f"the cgroup {line} is not mounted here")
    return folders


def _coordinate(asked: Mapping[str, str]) -> None:
    os.environ["STEWARD_ELASTIC_TOKEN"] = asked["token"]
    sys.argv = ["steward.elastic", *shlex.split(asked["argv"])]
    runpy.run_module("steward.elastic", run_name="__main__")


def environ_of(pid: int) -> dict[str, str]:
    """The environment that a process began with; empty where it has gone."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = os.fsdecode(file.read(_MAX_ENVIRON))
    except OSError:
        return {}
    return dict(entry.partition("=")[::2] for entry in text.split("\0") if entry.partition("=")[1])


def submit(script: int, run_id: JobId, asked: Mapping[str, str]) -> None:
    """Nothing when there is a job with that comment already."""
    theirs = environ_of(script)
    env = replica_env(theirs, run_id, asked)
    os.environ.clear()
    os.environ.update(env)
    known = run(("squeue", "--noheader", "--user", str(os.geteuid()), "--format=%k"), timeout_s=COMMAND_S)
    if asked["comment"] in (line.strip() for line in known.text.splitlines()):
        return
    os.chdir(theirs.get("SLURM_SUBMIT_DIR", "/"))
    text = run(
        ("scontrol", "write", "batch_script", str(run_id), "-"), timeout_s=COMMAND_S, max_bytes=_MAX_SCRIPT
    ).stdout
    if len(text) >= _MAX_SCRIPT:
        raise ValueError(f"the script of job {run_id} is too long to be submitted again")
    place = Path(asked["folder"]) / script_name(asked["comment"])
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(text)
    try:
        run(("sbatch", *replica_options(theirs, run_id, asked), str(place), *_arguments(script)), timeout_s=COMMAND_S)
    finally:
        place.unlink(missing_ok=True)


def script_name(comment: str) -> str:
    """Each replica's own: two that are submitted at once must not read what the other writes."""
    known = replica_of(comment)
    if known is None:
        raise ValueError(f"{comment!r} names no replica")
    return f"replica-{known[1]}"


def replica_env(theirs: Mapping[str, str], run_id: JobId, asked: Mapping[str, str]) -> dict[str, str]:
    """The base's environment without what Slurm and we put into it, and what makes the job a replica."""
    env = {name: value for name, value in theirs.items() if not name.startswith(_OWN)}
    kept = {name: theirs[name] for name in ("SLURM_CONF", "STEWARD_ELASTIC") if name in theirs}
    mine = {"STEWARD_ELASTIC_RUN": str(run_id), "STEWARD_ELASTIC_SUBMIT": "1"}
    talk = {"STEWARD_ELASTIC_ADDRESS": asked["address"], "STEWARD_ELASTIC_TOKEN": asked["token"]}
    return {"PATH": os.defpath} | env | kept | mine | talk


def replica_options(theirs: Mapping[str, str], run_id: JobId, asked: Mapping[str, str]) -> list[str]:
    """The user's own words, then ours: the last one counts."""
    typed = [unquote(word, errors="surrogateescape") for word in theirs.get("STEWARD_ELASTIC_ARGS", "").split()]
    name = theirs.get("SLURM_JOB_NAME", str(run_id))[:200]
    ours = [
        *(f"--nodes={asked['nodes']}", f"--job-name={name}.r", f"--comment={asked['comment']}"),
        *(f"--dependency=after:{run_id}", "--kill-on-invalid-dep=yes", "--no-requeue", "--parsable"),
        *("--open-mode=append", f"--signal=TERM@{asked['grace']}"),
    ]
    if (tasks := _tasks(theirs, int(asked["nodes"]))) is not None:
        ours.append(f"--ntasks={tasks}")
    ours += [f"--{option}={asked[option]}" for option in ("time", "qos", "exclude") if asked.get(option)]
    return [*_without_wrap(typed), *ours]


def _tasks(theirs: Mapping[str, str], nodes: int) -> int | None:
    """As many a node as the base has, where it says so."""
    try:
        tasks, over = int(theirs["SLURM_NTASKS"]), int(theirs["SLURM_JOB_NUM_NODES"])
    except (KeyError, ValueError):
        return None
    return max(tasks * nodes // over, nodes) if over > 0 else None


def _without_wrap(words: Sequence[str]) -> list[str]:
    """What was wrapped is in the script that slurmctld has."""
    kept: list[str] = []
    words = [word for word in words if word not in _DROPPED]
    for before, word in zip(["", *words], words, strict=False):
        if before != "--wrap" and word.partition("=")[0] != "--wrap":
            kept.append(word)
    return kept


def _arguments(pid: int) -> list[str]:
    """Those of the script itself."""
    words = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")[:-1]
    at = next((number for number, word in enumerate(words) if word.endswith("/slurm_script")), len(words))
    return words[at + 1 :]


def _cancel(run_id: JobId, replica: str) -> None:
    said = run(("squeue", "--noheader", "--jobs", replica, "--format=%k"), timeout_s=COMMAND_S).text.strip()
    known = replica_of(said)
    if known is None or known[0] != run_id:
        raise ValueError(f"job {replica} is no replica of run {run_id}")
    run(("scancel", replica), timeout_s=COMMAND_S)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], int(sys.argv[2]), JobId(int(sys.argv[3])), json.load(sys.stdin)))
    except Exception as error:  # the agent tells its user what this program says
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
