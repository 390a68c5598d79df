"""The program that acts for an elastic run as the run's user: `python -I -m ... WHAT UID JOB`.

It begins as root. A process that its user can trace must not run in the agent's cgroup: so the program first joins the
cgroup of the job's own script, whose limits and end then hold for it, too, and becomes the user for good. The
coordinator runs in this process, which its user cannot trace; sbatch runs as a program that the user could start in
that cgroup, too.
"""

import json
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from steward.adapters import proc
from steward.adapters.node import job_processes
from steward.adapters.node.user_look import become_user, cgroup_folder
from steward.adapters.process import Failed, run, said_by
from steward.model.elastic import replica_of
from steward.model.ids import JobId

_WITH_VALUE: Mapping[str, str] = {
    "wrap": "wr",
    "nodelist": "nodel",
    "nodefile": "nodef",
    "begin": "be",
    "mail-type": "mail-t",
    "time-min": "time-",
}
"""Options with a value that a replica must not have, each with the shortest form that getopt accepts."""
_ALONE: Mapping[str, str] = {"wait": "wait", "test-only": "te", "parsable": "pars", "hold": "hold"}
"""The same for options without a value."""
_SHORT_WITH_VALUE, _SHORT_ALONE = ("w", "F", "b"), ("W", "H")
_LINE = re.compile(rb"#SBATCH\s+(.*)")


def for_replica(words: Sequence[str]) -> list[str]:
    """Return sbatch's arguments without the options (and their values) that a replica must not have."""
    return list(_allowed_words(iter(words)))


def script_for_replica(script: bytes) -> bytes:
    """Return the script without such options in its `#SBATCH` lines; lines that cannot be parsed stay."""
    lines = script.split(b"\n")
    for number, line in enumerate(lines):
        if number and line.strip() and not line.startswith(b"#"):
            break  # sbatch reads no further
        if (found := _LINE.match(line)) is not None:
            lines[number] = _line_for_replica(line, found[1])
    return b"\n".join(lines)


def _line_for_replica(line: bytes, said: bytes) -> bytes:
    try:
        words = shlex.split(said.decode("utf-8", "surrogateescape"), comments=True)
    except ValueError:
        return line
    kept = for_replica(words)
    if kept == words:
        return line
    text = f"#SBATCH {shlex.join(kept)}" if kept else "#"
    return text.encode("utf-8", "surrogateescape")


def _allowed_words(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        name, equals, _ = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            if _is_one_of(name, _WITH_VALUE):
                if not equals:
                    next(words, "")
            elif not _is_one_of(name, _ALONE):
                yield word
        elif word[:1] == "-" and word[1:2] in _SHORT_WITH_VALUE:
            if len(word) == 2:
                next(words, "")
        elif not (word[:1] == "-" and len(word) == 2 and word[1] in _SHORT_ALONE):
            yield word


def _is_one_of(name: str, options: Mapping[str, str]) -> bool:
    return any(option.startswith(name) and name.startswith(least) for option, least in options.items())


COMMAND_S = 30.0
_NUMBER = re.compile(r"\d{1,9}\Z")
_GPUS = re.compile(r"([A-Za-z0-9_.-]+:)?(\d{1,9})\Z")
_MAX_ENVIRON = 1 << 20
_MAX_SCRIPT = 16 << 20
_BASE_ONLY = ("SLURM", "_SLURM", "STEWARD_", "PMI", "SPANK_")
"""The prefixes of variables of the base's run, which must not reach the replica."""


def main(what: str, uid: int, job: JobId, asked: Mapping[str, str]) -> int:
    """Carry out `what` as the user. Raises OSError, ValueError or Failed (a Retryable), with the reason."""
    script = _script_of(job, uid, asked["token"])
    if what == "coordinate":
        _leave_starter()
    _join_cgroups(script)
    become_user(uid)
    match what:
        case "coordinate":
            _coordinate(asked)
        case "submit":
            submit(script, job, asked)
        case _:
            raise ValueError(what)
    return 0


def _script_of(job: JobId, uid: int, token: str) -> int:
    """Return the oldest process of the base job with the run's token in its environment: the script, while it runs.

    Raises OSError if there is none.
    """
    # Processes of an earlier run of the job, and of another cluster's job with that number, have another token.
    here = [pid for pid, _ in job_processes.processes({job: uid}) if job_processes.owner(Path(f"/proc/{pid}")) == uid]
    pids = sorted(here, key=_began)
    mine = {"STEWARD_ELASTIC_ROLE": "base", "STEWARD_ELASTIC_TOKEN": token}
    found = next((pid for pid in pids if mine.items() <= environ_of(pid).items()), None)
    if found is None:
        raise OSError(f"no process of job {job} has the run's token: the script began before the token, or is over")
    return found


def _began(pid: int) -> float:
    """Return when the process began, in clock ticks; infinity if it has gone."""
    # Process ids wrap: a lower one may be younger.
    seen = proc.look(pid)
    return float("inf") if seen is None else float(seen.process.started)


def _leave_starter() -> None:
    """Leave the process group of the starter, and let the first process end once the coordinator begins."""
    # The starter waits for the first process only, and then ends the rest of its process group. The first process
    # passes on an error that prevents the coordinator's start.
    heard, said = os.pipe()
    if os.fork():
        os.close(said)
        with open(heard, "rb") as file:
            words = file.read()
        sys.stderr.write(words.decode(errors="replace"))
        sys.stderr.flush()
        os._exit(1 if words else 0)
    os.setsid()
    os.dup2(said, 2)
    with open(os.devnull, "r+b") as nothing:
        for number in range(2):
            os.dup2(nothing.fileno(), number)
    for number in (heard, said):
        os.close(number)


def _join_cgroups(pid: int) -> None:
    """Move into the cgroups of that process, if they differ from ours."""
    if os.geteuid() != 0:
        return
    own, mounts = Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
    for folder in cgroup_folders(Path(f"/proc/{pid}/cgroup").read_text(), own, mounts):
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def cgroup_folders(theirs: str, own: str, mounts: str) -> list[Path]:
    """Return the folders of the cgroups that another process is in and we are not.

    `theirs` and `own` are the texts of /proc/PID/cgroup, `mounts` is our mountinfo. Raises ValueError if a cgroup is
    not mounted.
    """
    folders = []
    for line in set(theirs.splitlines()) - set(own.splitlines()):
        folder = cgroup_folder(line, mounts)
        if folder is None:
            raise ValueError(f"the cgroup {line} is not mounted here")
        folders.append(folder)
    return folders


def _coordinate(asked: Mapping[str, str]) -> None:
    os.environ["STEWARD_ELASTIC_TOKEN"] = asked["token"]
    sys.argv = ["steward.elastic", *shlex.split(asked["argv"])]
    folder = Path(asked["folder"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    os.close(log)
    runpy.run_module("steward.elastic", run_name="__main__")


def environ_of(pid: int) -> dict[str, str]:
    """Return the environment that a process began with; empty if it has gone."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = os.fsdecode(file.read(_MAX_ENVIRON))
    except OSError:
        return {}
    return dict(entry.partition("=")[::2] for entry in text.split("\0") if entry.partition("=")[1])


def submit(script: int, run_id: JobId, asked: Mapping[str, str]) -> None:
    """Submit the replica job, unless a job with the same comment (its run and token) exists."""
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
    place.write_bytes(script_for_replica(text))
    try:
        run(("sbatch", *replica_options(theirs, run_id, asked), str(place), *_arguments(script)), timeout_s=COMMAND_S)
    finally:
        place.unlink(missing_ok=True)


def script_name(comment: str) -> str:
    """Return the name of the replica's script, different for each, since two may be submitted at once."""
    known = replica_of(comment)
    if known is None:
        raise ValueError(f"{comment!r} names no replica")
    return f"replica-{known[1]}"


def replica_env(theirs: Mapping[str, str], run_id: JobId, asked: Mapping[str, str]) -> dict[str, str]:
    """Return the replica's environment: the base's, without Slurm's and Steward's variables, and a replica's own."""
    # With SBATCH_WAIT the submission would last as long as the job.
    env = {name: value for name, value in theirs.items() if not name.startswith(_BASE_ONLY) and name != "SBATCH_WAIT"}
    kept = {name: theirs[name] for name in ("SLURM_CONF", "STEWARD_ELASTIC") if name in theirs}
    mine = {"STEWARD_ELASTIC_RUN": str(run_id), "STEWARD_ELASTIC_SUBMIT": "1"}
    talk = {"STEWARD_ELASTIC_ADDRESS": asked["address"], "STEWARD_ELASTIC_TOKEN": asked["token"]}
    return {"PATH": os.defpath} | env | kept | mine | talk


def replica_options(theirs: Mapping[str, str], run_id: JobId, asked: Mapping[str, str]) -> list[str]:
    """Return sbatch's options for the replica: the user's own, then ours, since the last one counts."""
    typed = [unquote(word, errors="surrogateescape") for word in theirs.get("STEWARD_ELASTIC_ARGS", "").split()]
    name = theirs.get("SLURM_JOB_NAME", str(run_id))[:200]
    ours = [
        *(f"--nodes={asked['nodes']}", f"--job-name={name}.r", f"--comment={asked['comment']}"),
        *(f"--dependency=after:{run_id}", "--kill-on-invalid-dep=yes", "--no-requeue", "--parsable"),
        *("--open-mode=append", f"--signal=TERM@{asked['grace']}"),
    ]
    if (tasks := _tasks(theirs, int(asked["nodes"]))) is not None:
        ours.append(f"--ntasks={tasks}")
    if gpus := _gpus(theirs, int(asked["nodes"])):
        ours.append(f"--gpus={gpus}")
    ours += [f"--{option}={asked[option]}" for option in ("time", "qos", "exclude") if asked.get(option)]
    return [*for_replica(typed), *ours]


def _tasks(theirs: Mapping[str, str], nodes: int) -> int | None:
    """Return the number of tasks for `nodes` nodes, in proportion to the base job; None if that is unknown."""
    try:
        tasks, over = int(theirs["SLURM_NTASKS"]), int(theirs["SLURM_JOB_NUM_NODES"])
    except (KeyError, ValueError):
        return None
    return max(tasks * nodes // over, nodes) if over > 0 else None


def _gpus(theirs: Mapping[str, str], nodes: int) -> str:
    """Return the GPUs for `nodes` nodes, in proportion to the base's `--gpus`; empty if the base had no `--gpus`."""
    over = theirs.get("SLURM_JOB_NUM_NODES", "")
    parts = [_GPUS.match(part) for part in theirs.get("SLURM_GPUS", "").split(",")]
    if not _NUMBER.match(over) or not int(over) or not all(parts):
        return ""
    return ",".join(f"{part[1] or ''}{-(-int(part[2]) * nodes // int(over))}" for part in parts if part)


def _arguments(pid: int) -> list[str]:
    """Return the arguments of the batch script that this process runs."""
    words = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")[:-1]
    at = next((number for number, word in enumerate(words) if word.endswith("/slurm_script")), len(words))
    return words[at + 1 :]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], int(sys.argv[2]), JobId(int(sys.argv[3])), json.load(sys.stdin)))
    except Exception as error:  # the agent reports this program's message to its user
        sys.stderr.write(f"{said_by(error) if isinstance(error, Failed) else error}\n")
        sys.exit(1)
