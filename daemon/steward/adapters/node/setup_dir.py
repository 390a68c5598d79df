"""A setup on a node's disk: the agent's order to the runner, and the runner's report. Either may die at any time.

The agent starts the runner, and cleans up after it. `job.json` is written once, before the runner starts. The runner
holds the lock for life; only the holder of the lock may write `report.json`. A run whose lock is free and whose report
is not final was cut off, and never runs again.
"""

import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steward.adapters.codec import int_field, text_field
from steward.adapters.files import make_own, read_json, write_json
from steward.adapters.proc import ProcessKey, is_alive
from steward.adapters.process import run
from steward.adapters.wire.frames import Malformed
from steward.adapters.wire.order_messages import order_of, order_record, setup_frame, setup_of
from steward.model.agent_action import SetUpNode
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.setup import SetupReport, SetupState
from steward.model.text import cause
from steward.ports import Permanent, Retryable

_MAX_JOB = 32 << 20
_RUNS_KEPT = 5
_PATH = 4096
_START_TIMEOUT_S = 60.0
_PASSED_ON = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "TMPDIR", "SLURM_CONF")
_PASSED_PREFIXES = ("AWS_", "STEWARD_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The node's side of a setup. `head` is the host of the head as agents know it, `log` the node's own full log."""

    node: NodeName
    incarnation: Incarnation
    head: str
    config_dir: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupJob:
    """A setup as stored for the runner: the head's order, and the node's side."""

    order: SetUpNode
    here: Here


class SetupLocked(Retryable):
    """An error while a living runner holds the lock."""


class SetupDir:
    """The files of a setup below `root/runs/TOKEN`. Every method may raise Retryable if the disk does not work."""

    def __init__(self, root: Path, token: str) -> None:
        self.root = root
        self.token = token
        self.path = root / "runs" / token
        self.output = self.path / "output"
        """The scripts' output, as sent to the head."""
        self.crash_log = self.path / "runner.log"
        """The output of the runner itself, for the case of a crash."""

    @property
    def scripts(self) -> Path:
        """The folder of the fetched scripts; there is one for all setups of the node."""
        return self.root / "scripts"

    def job(self) -> SetupJob | None:
        """Return the stored job; None if there is none, or it is malformed."""
        stored = read_json(self.path / "job.json", _MAX_JOB)
        try:
            return _job_of(stored) if isinstance(stored, dict) else None
        except Malformed:
            return None

    def create(self, job: SetupJob) -> None:
        """Store the job. Raises Permanent if other users may write there: the scripts run as root."""
        try:
            make_own(self.root)
        except PermissionError as error:
            raise Permanent(f"agent.setup_dir {self.root}: {cause(error)}") from error
        except OSError as error:
            raise Retryable(f"agent.setup_dir {self.root}: {cause(error)}") from error
        write_json(self.path / "job.json", _job_record(job), sync=True)

    def forget(self) -> None:
        """Delete all files of a run that is over."""
        shutil.rmtree(self.path, ignore_errors=True)

    def report(self) -> SetupReport | None:
        """Return the runner's last report; None if it has not begun."""
        stored = read_json(self.path / "report.json")
        try:
            return setup_of(stored) if isinstance(stored, dict) else None
        except Malformed:
            return None

    def tell(self, report: SetupReport) -> None:
        """Store the report; the caller holds the lock."""
        write_json(self.path / "report.json", setup_frame(report), sync=True)

    def note_script(self, process: ProcessKey) -> None:
        """Note the leader of the script's process group, for the cleanup after a run that was cut off."""
        write_json(self.path / "script.json", {"pid": process.pid, "started": process.started})

    def script(self) -> ProcessKey | None:
        stored = read_json(self.path / "script.json")
        try:
            found = stored if isinstance(stored, dict) else {}
            return ProcessKey(pid=int_field(found, "pid", low=2), started=int_field(found, "started"))
        except Malformed:
            return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run's lock. Raises SetupLocked if another process holds it."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise Retryable(f"cannot lock {self.path}: {cause(error)}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise SetupLocked(f"the setup {self.token} is under way") from None
        finally:
            os.close(descriptor)

    def finish_if_cut_off(self, why: str, at: float) -> SetupReport | None:
        """Return the final report, after marking a run whose runner died as FAILED; None while its runner lives."""
        try:
            with self.locked():
                told = self.report() or SetupReport(token=self.token, state=SetupState.RUNNING)
                if told.state is SetupState.RUNNING:
                    told = replace(told, state=SetupState.FAILED, why=why, at=at)
                    self.tell(told)
                return told
        except SetupLocked:
            return None


def _job_record(job: SetupJob) -> dict[str, Any]:
    here = job.here
    return {
        "order": order_record(job.order),
        "node": here.node,
        "instance": here.incarnation.instance,
        "boot": here.incarnation.boot,
        "head": here.head,
        "config_dir": str(here.config_dir),
        "log": str(here.log),
    }


def _job_of(record: dict[str, Any]) -> SetupJob:
    order = record.get("order")
    if not isinstance(order, dict):
        raise Malformed("a stored job has no order")
    incarnation = Incarnation(
        instance=InstanceId(text_field(record, "instance", 256)), boot=BootId(text_field(record, "boot", 256))
    )
    here = Here(
        node=NodeName(text_field(record, "node", 253)),
        incarnation=incarnation,
        head=text_field(record, "head", 253),
        config_dir=Path(text_field(record, "config_dir", _PATH)),
        log=Path(text_field(record, "log", _PATH)),
    )
    return SetupJob(order=order_of(order, here.node), here=here)


def load_job(run: SetupDir) -> SetupJob:
    """Return the stored job. Raises Permanent if there is none, or it is malformed."""
    job = run.job()
    if job is None:
        raise Permanent(f"{run.path} holds no order for a setup")
    return job


def last_run(root: Path, incarnation: Incarnation) -> SetupDir | None:
    """Return the latest run that was ordered in this incarnation; None if there is none."""
    for known in _runs(root):
        job = known.job()
        if job is not None and job.here.incarnation == incarnation:
            return known
    return None


def prune(root: Path) -> None:
    """Delete the oldest runs; a few are left for people to look at."""
    for known in _runs(root)[_RUNS_KEPT - 1 :]:
        known.forget()


def _runs(root: Path) -> list[SetupDir]:
    """Return all runs, the latest first."""
    jobs = sorted((root / "runs").glob("*/job.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [SetupDir(root, path.parent.name) for path in jobs]


class Starter:
    """The starter of runners, which outlive the agent.

    Under systemd a runner gets a unit of its own: the agent's unit is ended as a whole, and its restrictions (no new
    privileges, last to be killed for memory) are not meant for a site's scripts and the daemons that they start.
    """

    def __init__(self, *, systemd: Path = Path("/run/systemd/system"), env: Mapping[str, str] = os.environ) -> None:
        """Find out whether the agent is a service. `systemd` exists if systemd runs; `env` is the agent's."""
        self._is_service = systemd.is_dir() and "INVOCATION_ID" in env
        self._env = env

    def start(self, setup: SetupDir) -> None:
        """Start the runner, and return once it has begun, or if the setup is over. Raises Retryable if it fails."""
        argv = [sys.executable, "-m", "steward.lifecycle", "run", str(setup.root), setup.token]
        unit = _unit(setup.token, self._env) if self._is_service else ()
        run([*unit, *argv], timeout_s=_START_TIMEOUT_S)

    def sweep(self, setup: SetupDir) -> None:
        """End the script that a cut-off runner left behind."""
        script = setup.script()
        if script is not None and is_alive(script):
            with suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)


def _unit(token: str, env: Mapping[str, str]) -> Sequence[str]:
    """Return the words before the runner's argv, which run it as a unit of its own."""
    # A forking service has begun when its first process ends; processes left in the background do not end with it.
    properties = ("Type=forking", "KillMode=process", "OOMPolicy=continue", "TimeoutStartSec=60")
    names = sorted(name for name in env if name.upper() in _PASSED_ON or name.startswith(_PASSED_PREFIXES))
    return (
        "systemd-run",
        "--quiet",
        "--collect",
        f"--unit=steward-setup-{token}",
        *(f"--property={each}" for each in properties),
        *(f"--setenv={name}" for name in names),
        "--",
    )
