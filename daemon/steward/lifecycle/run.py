"""One setup of a node, step by step. The start of each step and the end are reported."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steward.adapters.fetch.folder import FetchBudget, digest, inside
from steward.adapters.files import read_json
from steward.adapters.node.setup_dir import SetupDir, SetupJob, load_job
from steward.adapters.proc import ProcessKey, adopt_orphans, end_all_below, look
from steward.adapters.process import Failed, run_to_file
from steward.lifecycle.output import SetupOutput
from steward.lifecycle.source import fetch_source
from steward.model.group import Role
from steward.model.setup import SetupReport, SetupState
from steward.model.text import cause, cause_and_file
from steward.ports import Permanent, PortError

PARAMETERS = "provisioning_parameters.json"
_SHELL = "/bin/bash"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """A step of a setup, with its name in reports."""

    name: str
    do: Callable[[], None]


def carry_out(run: SetupDir, begun: Callable[[], None]) -> None:
    """Carry out the setup, whose lock the caller holds.

    Calls `begun` when the first report is on disk. Raises PortError only before that.
    """
    job, before = load_job(run), run.report()
    if before is not None and before.state is not SetupState.RUNNING:
        begun()
        return
    report = SetupReport(token=run.token, state=SetupState.RUNNING, step="begin", at=time.time())
    run.tell(report)
    begun()
    try:
        adopt_orphans()
        with SetupOutput(job.here.log, run.output) as output:
            run.tell(_run_steps(run, job, output, report))
    except (PortError, OSError) as error:
        run.tell(replace(report, state=SetupState.FAILED, why=cause_and_file(error), at=time.time()))
    except SystemExit:
        run.tell(replace(report, state=SetupState.FAILED, why="the runner was told to stop", at=time.time()))


def _run_steps(run: SetupDir, job: SetupJob, output: SetupOutput, report: SetupReport) -> SetupReport:
    """Run the steps up to the first that fails, and return the final report."""
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
            output.say(f"Lifecycle scripts did not run successfully: {step.name}: {cause_and_file(error)}")
            return replace(
                report,
                state=SetupState.FAILED,
                why=cause_and_file(error),
                exit_status=status,
                lines=output.last_lines,
                at=time.time(),
            )
    output.say("The lifecycle scripts succeeded.")
    return replace(report, state=SetupState.SUCCEEDED, exit_status=0, at=time.time())


def _steps(
    run: SetupDir, job: SetupJob, output: SetupOutput, deadline: float, waits: Callable[[str], None]
) -> list[SetupStep]:
    lifecycle = job.order.lifecycle
    scripts = (("OnCreate", lifecycle.on_create), ("OnInitComplete", lifecycle.on_init_complete))
    env = environment(job, place_of(job))

    def scripted(name: str) -> Callable[[], None]:
        return LifecycleScript(name, run=run, env=env, output=output, deadline=deadline, limit_s=job.order.timeout_s)

    return [
        SetupStep(name="download", do=lambda: _download(run, job, output, deadline, waits)),
        SetupStep(name="checksum", do=lambda: _check_digest(run, lifecycle.sha256)),
        SetupStep(name="config", do=lambda: write_config(job, run.scripts)),
        *(SetupStep(name=hook, do=scripted(name)) for hook, name in scripts if name),
    ]


def _download(run: SetupDir, job: SetupJob, output: SetupOutput, deadline: float, waits: Callable[[str], None]) -> None:
    lifecycle = job.order.lifecycle
    output.say(f"Downloading lifecycle scripts from {lifecycle.source}")
    pinned = bool(lifecycle.sha256)
    fetch_source(lifecycle.source, run.scripts, lambda: FetchBudget(deadline=deadline), told=waits, pinned=pinned)


def _check_digest(run: SetupDir, wanted: str) -> None:
    """Check the scripts' digest. Raises Permanent, before any script is run, if the digest differs."""
    if wanted and (found := digest(run.scripts)) != wanted.lower():
        raise Permanent(f"the scripts' sha256 is {found}, not {wanted}: no script was run")


def write_config(job: SetupJob, scripts: Path) -> None:
    """Write the configuration files for the scripts. Raises Permanent.

    The head's parameters override those in the scripts' own file. A source without such a file gets one, since
    HyperPod's scripts read it from their own folder.
    """
    config = parse(job.order.resource_config)
    _name_controller(config, job.here.head)
    own = read_json(scripts / PARAMETERS)
    parameters = {**(own if isinstance(own, dict) else {}), **parse(job.order.provisioning)}
    folder = job.here.config_dir
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        _write_json(folder / RESOURCE_CONFIG, config)
        _write_json(folder / PARAMETERS, parameters)
        if not (scripts / PARAMETERS).exists():
            _write_json(scripts / PARAMETERS, parameters)
    except OSError as error:
        raise Permanent(f"cannot write {folder}: {cause(error)}; correct agent.config_dir") from error


def _name_controller(config: dict[str, Any], head: str) -> None:
    """Set the controller's address to the head's, where the head left it empty."""
    address = _address(head)
    slurm = config.setdefault("SlurmConfig", {})
    if isinstance(slurm, dict) and not slurm.get("PrimaryControllerIp"):
        slurm["PrimaryControllerIp"] = address
    for instance in controllers(config):
        for member in ("AgentIpAddress", "CustomerIpAddress"):
            instance[member] = instance.get(member) or address


def _address(host: str) -> str:
    """Return an address of the host, IPv4 if there is one, as HyperPod's scripts expect; else the name itself."""
    for family in (socket.AF_INET, socket.AF_UNSPEC):
        try:
            return str(socket.getaddrinfo(host, None, family)[0][4][0])
        except OSError:
            continue
    return host


def _write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace the file in one step, so that a reader never sees half of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value, indent=1) + "\n")
    new.chmod(0o644)
    new.replace(path)


class ScriptFailed(Permanent):
    """A script failed. `status` is its exit status, negative for a signal."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class LifecycleScript:
    """One script of a setup. `deadline` is on the monotonic clock; `limit_s` is the setup's limit, for messages."""

    def __init__(
        self,
        name: str,
        *,
        run: SetupDir,
        env: Mapping[str, str],
        output: SetupOutput,
        deadline: float,
        limit_s: float,
    ) -> None:
        self._name, self._run, self._env, self._output = name, run, env, output
        self._deadline, self._limit_s = deadline, limit_s
        self._is_noted = False

    def __call__(self) -> None:
        """Run the script. Raises ScriptFailed if its status is not 0, Permanent if it cannot run or takes too long."""
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
                end_all_below(_own_process())

    def _watch(self, pid: int) -> None:
        if not self._is_noted and (seen := look(pid)) is not None:
            self._run.note_script(seen.process)
            self._is_noted = True
        self._output.follow()


_FIRST_BYTES = 4096


def _own_process() -> ProcessKey:
    seen = look(os.getpid())
    assert seen is not None
    return seen.process


def _argv(path: Path) -> list[str]:
    """Return the command that runs the script; bash runs a script that names no interpreter.

    Raises Permanent for a script with Windows line ends: Linux would report its interpreter as missing.
    """
    path.chmod(0o755)  # files from a bucket have no mode
    with path.open("rb") as file:
        begin = file.read(_FIRST_BYTES)
    if not begin.startswith(b"\x7fELF") and b"\r\n" in begin:
        raise Permanent(
            f"{path.name} has Windows line ends (CRLF): save it with Unix line ends (dos2unix) at its source"
        )
    return [str(path)] if begin[:2] in (b"#!", b"\x7fE") else [_SHELL, str(path)]


# The environment of a script, and its node's place in the cluster.

RESOURCE_CONFIG = "resource_config.json"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SERVICE_VARIABLES = (
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
)
"""Variables of the agent's systemd service, which a daemon started by a script must not inherit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlace:
    """The cluster, group and (API) role of a node; empty if resource_config.json does not name the node."""

    cluster: str = ""
    group: str = ""
    role: str = ""


def place_of(job: SetupJob) -> NodePlace:
    """Return the node's place as in resource_config.json. Raises Permanent if the document is no JSON object."""
    config = parse(job.order.resource_config)
    cluster = str(_dict(config.get("ClusterConfig")).get("ClusterName", ""))
    for group in _dicts(config.get("InstanceGroups")):
        names = {each.get("InstanceName") for each in _dicts(group.get("Instances"))}
        if job.here.node in names:
            return NodePlace(cluster=cluster, group=str(group.get("Name", "")), role=_role(group))
    return NodePlace(cluster=cluster)


def controllers(config: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Return the instances of the controller's group, as resource_config.json has them."""
    groups = [group for group in _dicts(config.get("InstanceGroups")) if _role(group) == Role.CONTROLLER.value]
    return [instance for group in groups for instance in _dicts(group.get("Instances"))]


def _role(group: dict[str, Any]) -> str:
    return str(_dict(group.get("SlurmConfig")).get("NodeType", ""))


def environment(job: SetupJob, place: NodePlace) -> Mapping[str, str]:
    """Return a script's environment: the runner's, without the agent service's variables, and the documented ones."""
    here = job.here
    kept = {name: value for name, value in os.environ.items() if name not in _SERVICE_VARIABLES}
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
        "STEWARD_FEATURES": ",".join(sorted(job.order.features)),
        "STEWARD_HEAD": here.head,
        "STEWARD_SETUP_TOKEN": job.order.token,
    }


def parse(document: str) -> dict[str, Any]:
    """Return the JSON object in the document. Raises Permanent."""
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
