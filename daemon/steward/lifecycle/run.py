"""The whole of one setup, step by step; every step's beginning and the end are told."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steward.adapters.fetch.folder import Budget, digest, inside
from steward.adapters.files import read_json
from steward.adapters.node.setup_dir import SetupDir, SetupJob, load_job
from steward.adapters.proc import Process, adopt_orphans, end_all_below, look
from steward.adapters.process import Failed, run_to_file
from steward.lifecycle.output import Output
from steward.lifecycle.source import fetch
from steward.model.group import Role
from steward.model.setup import SetupReport, SetupState
from steward.ports import Permanent, PortError

PARAMETERS = "provisioning_parameters.json"
_SHELL = "/bin/bash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`name` is what reports call it."""

    name: str
    do: Callable[[], None]


def carry_out(run: SetupDir, begun: Callable[[], None]) -> None:
    """`begun` is called when the first report is on disk. The caller holds the lock. Raises PortError only before."""
    job, before = load_job(run), run.report()
    if before is not None and before.state is not SetupState.RUNNING:
        begun()
        return
    report = SetupReport(token=run.token, state=SetupState.RUNNING, step="begin", at=time.time())
    run.tell(report)
    begun()
    try:
        adopt_orphans()
        with Output(job.here.log, run.output) as output:
            run.tell(_through(run, job, output, report))
    except (PortError, OSError) as error:
        run.tell(replace(report, state=SetupState.FAILED, why=str(error), at=time.time()))
    except SystemExit:
        run.tell(replace(report, state=SetupState.FAILED, why="the runner was told to stop", at=time.time()))


def _through(run: SetupDir, job: SetupJob, output: Output, report: SetupReport) -> SetupReport:
    """All steps, or up to the first that fails; the final report."""
    output.say(f"Setup {run.token} of {job.here.node} begins")

    def waits(text: str) -> None:
        output.say(text)
        run.tell(replace(report, why=text, at=time.time()))

    for step in _steps(run, job, output, time.monotonic() + job.order.timeout_s, waits):
        report = replace(report, step=step.name, at=time.time())
        run.tell(report)
        try:
            step.do()
        except (PortError, OSError) as error:
            status = error.status if isinstance(error, ScriptFailed) else None
            output.say(f"Lifecycle scripts did not run successfully: {step.name}: {error}")
            return replace(
                report,
                state=SetupState.FAILED,
                why=str(error),
                exit_status=status,
                lines=output.last_lines,
                at=time.time(),
            )
    output.say("The lifecycle scripts succeeded.")
    return replace(report, state=SetupState.SUCCEEDED, exit_status=0, at=time.time())


def _steps(run: SetupDir, job: SetupJob, output: Output, deadline: float, waits: Callable[[str], None]) -> list[Step]:
    lifecycle = job.order.lifecycle
    scripts = (("OnCreate", lifecycle.on_create), ("OnInitComplete", lifecycle.on_init_complete))
    env = environment(job, place_of(job))

    def scripted(name: str) -> Callable[[], None]:
        return Script(name, run=run, env=env, output=output, deadline=deadline, limit_s=job.order.timeout_s)

    return [
        Step(name="download", do=lambda: _download(run, job, output, deadline, waits)),
        Step(name="checksum", do=lambda: _compare(run, lifecycle.sha256)),
        Step(name="config", do=lambda: write_config(job, run.scripts)),
        *(Step(name=hook, do=scripted(name)) for hook, name in scripts if name),
    ]


def _download(run: SetupDir, job: SetupJob, output: Output, deadline: float, waits: Callable[[str], None]) -> None:
    lifecycle = job.order.lifecycle
    output.say(f"Downloading lifecycle scripts from {lifecycle.source}")
    pinned = bool(lifecycle.sha256)
    fetch(lifecycle.source, run.scripts, lambda: Budget(deadline=deadline), told=waits, pinned=pinned)


def _compare(run: SetupDir, wanted: str) -> None:
    """Before anything of it is run or added."""
    if wanted and (found := digest(run.scripts)) != wanted.lower():
        raise Permanent(f"the scripts' sha256 is {found}, not {wanted}: nothing of them was run")


def write_config(job: SetupJob, scripts: Path) -> None:
    """The scripts' own parameters are kept and the head's are laid over them: it knows the groups best. A source
    without such a file gets one, since HyperPod's scripts read it from their own folder. Raises Permanent."""
    config = parse(job.order.resource_config)
    _name_controller(config, job.here.head)
    own = read_json(scripts / PARAMETERS)
    parameters = {**(own if isinstance(own, dict) else {}), **parse(job.order.provisioning)}
    folder = job.here.config_dir
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        _replace(folder / RESOURCE_CONFIG, config)
        _replace(folder / PARAMETERS, parameters)
        if not (scripts / PARAMETERS).exists():
            _replace(scripts / PARAMETERS, parameters)
    except OSError as error:
        raise Permanent(f"cannot write {folder}: {error}; correct agent.config_dir") from error


def _name_controller(config: dict[str, Any], head: str) -> None:
    """Where the head cannot say by which address a node reaches the controller: by the one of the head."""
    address = _address(head)
    slurm = config.setdefault("SlurmConfig", {})
    if isinstance(slurm, dict) and not slurm.get("PrimaryControllerIp"):
        slurm["PrimaryControllerIp"] = address
    for instance in controllers(config):
        for member in ("AgentIpAddress", "CustomerIpAddress"):
            instance[member] = instance.get(member) or address


def _address(host: str) -> str:
    """IPv4 where the host has one, as HyperPod's scripts expect it."""
    for family in (socket.AF_INET, socket.AF_UNSPEC):
        try:
            return str(socket.getaddrinfo(host, None, family)[0][4][0])
        except OSError:
            continue
    return host


def _replace(path: Path, value: dict[str, Any]) -> None:
    """Never half a file: others read it whenever they like."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value, indent=1) + "\n")
    new.chmod(0o644)
    new.replace(path)


class ScriptFailed(Permanent):
    """`status` is the exit status, negative for a signal."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Script:
    """`deadline` is on the monotonic clock; `limit_s` is the limit of the whole setup, for words."""

    def __init__(
        self,
        name: str,
        *,
        run: SetupDir,
        env: Mapping[str, str],
        output: Output,
        deadline: float,
        limit_s: float,
    ) -> None:
        self._name, self._run, self._env, self._output = name, run, env, output
        self._deadline, self._limit_s = deadline, limit_s
        self._noted = False

    def __call__(self) -> None:
        """Raises ScriptFailed for a status that is not 0, Permanent when it cannot be run or takes too long."""
        path = inside(self._run.scripts, self._name)
        if not path.is_file():
            raise Permanent(f"{self._name} is not among the scripts")
        self._output.say(f"Running {self._name}")
        status = self._run_it(_argv(path))
        self._output.follow()
        if status != 0:
            raise ScriptFailed(f"{self._name} ended with status {status}", status)

    def _run_it(self, argv: list[str]) -> int:
        left_s = self._deadline - time.monotonic()
        try:
            return run_to_file(
                argv,
                output=self._output.file,
                cwd=str(self._run.scripts),
                env=self._env,
                timeout_s=left_s,
                watch=self._watch,
            )
        except Failed as error:
            late = time.monotonic() >= self._deadline
            raise Permanent(f"execution timed out after {self._limit_s:g} s" if late else str(error)) from error
        finally:
            if time.monotonic() >= self._deadline:
                end_all_below(_me())

    def _watch(self, pid: int) -> None:
        if not self._noted and (seen := look(pid)) is not None:
            self._run.note_script(seen.process)
            self._noted = True
        self._output.follow()


_FIRST_BYTES = 4096


def _me() -> Process:
    seen = look(os.getpid())
    assert seen is not None
    return seen.process


def _argv(path: Path) -> list[str]:
    """A script that does not name its interpreter is bash's. Objects in a bucket have no mode: it is given here. Raises
    Permanent for one with Windows' line ends: Linux calls its interpreter a file that is not there."""
    path.chmod(0o755)
    with path.open("rb") as file:
        begin = file.read(_FIRST_BYTES)
    if not begin.startswith(b"\x7fELF") and b"\r\n" in begin:
        raise Permanent(
            f"{path.name} has Windows line ends (CRLF): save it with Unix line ends (dos2unix) at its source"
        )
    return [str(path)] if begin[:2] in (b"#!", b"\x7fE") else [_SHELL, str(path)]


# The environment of a script, and where its node stands in the cluster.

RESOURCE_CONFIG = "resource_config.json"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OURS_ALONE = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID")
"""Variables of the agent's service; a daemon that a script starts would take them for its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Empty where resource_config.json does not name the node. `role` is the API's word."""

    cluster: str = ""
    group: str = ""
    role: str = ""


def place_of(job: SetupJob) -> Place:
    """Raises Permanent when resource_config.json is no JSON object."""
    config = parse(job.order.resource_config)
    cluster = str(_dict(config.get("ClusterConfig")).get("ClusterName", ""))
    for group in _dicts(config.get("InstanceGroups")):
        names = {each.get("InstanceName") for each in _dicts(group.get("Instances"))}
        if job.here.node in names:
            return Place(cluster=cluster, group=str(group.get("Name", "")), role=_role(group))
    return Place(cluster=cluster)


def controllers(config: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The instances of the controller's group, as resource_config.json has them."""
    groups = [group for group in _dicts(config.get("InstanceGroups")) if _role(group) == Role.CONTROLLER.value]
    return [instance for group in groups for instance in _dicts(group.get("Instances"))]


def _role(group: dict[str, Any]) -> str:
    return str(_dict(group.get("SlurmConfig")).get("NodeType", ""))


def environment(job: SetupJob, place: Place) -> Mapping[str, str]:
    """The runner's own environment, without what is only the agent's, and the promised names."""
    here = job.here
    kept = {name: value for name, value in os.environ.items() if name not in _OURS_ALONE}
    return {
        "PATH": _PATH,
        "HOME": "/root",
        **kept,
        "SAGEMAKER_RESOURCE_CONFIG_PATH": str(here.config_dir / RESOURCE_CONFIG),
        "STEWARD_NODE": here.node,
        "STEWARD_INSTANCE_ID": here.incarnation.instance,
        "STEWARD_CLUSTER": place.cluster,
        "STEWARD_GROUP": place.group,
        "STEWARD_ROLE": place.role,
        "STEWARD_FEATURES": ",".join(job.order.features),
        "STEWARD_HEAD": here.head,
        "STEWARD_SETUP_TOKEN": job.order.token,
    }


def parse(document: str) -> dict[str, Any]:
    """Raises Permanent."""
    try:
        value = json.loads(document or "{}")
    except (ValueError, RecursionError) as error:
        raise Permanent(f"the head sent a document that is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Permanent("the head sent a document that is not a JSON object")
    return value


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> Iterable[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
