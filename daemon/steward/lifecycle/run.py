"""The whole of one setup, step by step; every step's beginning and the end are told."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from steward.adapters.fetch.budget import Budget
from steward.adapters.fetch.digest import digest
from steward.adapters.node.setup_dir import SetupDir, SetupJob, load_job
from steward.adapters.proc import adopt_orphans
from steward.lifecycle.config import write_config
from steward.lifecycle.environment import environment, place_of
from steward.lifecycle.output import Output
from steward.lifecycle.script import Script, ScriptFailed
from steward.lifecycle.source import fetch
from steward.model.setup import SetupReport, SetupState
from steward.ports import Permanent, PortError


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
    for step in _steps(run, job, output, time.monotonic() + job.order.timeout_s):
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


def _steps(run: SetupDir, job: SetupJob, output: Output, deadline: float) -> list[Step]:
    lifecycle = job.order.lifecycle
    scripts = (("OnCreate", lifecycle.on_create), ("OnInitComplete", lifecycle.on_init_complete))
    env = environment(job, place_of(job))

    def scripted(name: str) -> Callable[[], None]:
        return Script(name, run=run, env=env, output=output, deadline=deadline, limit_s=job.order.timeout_s)

    return [
        Step(name="download", do=lambda: _download(run, job, output, deadline)),
        Step(name="checksum", do=lambda: _compare(run, lifecycle.sha256)),
        Step(name="config", do=lambda: write_config(job, run.scripts)),
        *(Step(name=hook, do=scripted(name)) for hook, name in scripts if name),
    ]


def _download(run: SetupDir, job: SetupJob, output: Output, deadline: float) -> None:
    lifecycle = job.order.lifecycle
    output.say(f"Downloading lifecycle scripts from {lifecycle.source}")
    pinned = bool(lifecycle.sha256)
    fetch(lifecycle.source, run.scripts, lambda: Budget(deadline=deadline), told=output.say, pinned=pinned)


def _compare(run: SetupDir, wanted: str) -> None:
    """Before anything of it is run or added."""
    if wanted and (found := digest(run.scripts)) != wanted.lower():
        raise Permanent(f"the scripts' sha256 is {found}, not {wanted}: nothing of them was run")
