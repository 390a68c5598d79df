"""The controller of a local bed: munged, slurmctld and stewardd, each under a first process of its own."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from steward.adapters import proc
from steward.adapters.proc import ProcessKey
from steward_bed import accounting
from steward_bed.accounting import DATABASE, SLURMDBD
from steward_bed.bed import BedError, BedSpec
from steward_bed.layout import Layout
from steward_bed.local_setup import find_program, slurm_env
from steward_bed.providers import local_machine
from steward_bed.providers.local_machine import Machine, Program, own_environment
from steward_bed.wait import NotInTime, wait_until

_READY_S = 10.0
Address = tuple[str, int]
SERVICES = ("munged", DATABASE, SLURMDBD, "slurmctld", "stewardd")

_OWN_LOG = ("slurmctld", SLURMDBD)


def services_of(spec: BedSpec) -> list[str]:
    """Those of SERVICES that such a bed has."""
    absent = {*(() if spec.steward else ("stewardd",)), *(() if spec.accounting else (DATABASE, SLURMDBD))}
    return [name for name in SERVICES if name not in absent]


class Controller:
    """Starts, finds and ends the three services; knows nothing of nodes."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def start_munged(self) -> None:
        """Returns when credentials can be made."""
        layout, private = self._layout, self._layout.munge_key.parent
        flags = {
            "key-file": layout.munge_key,
            "socket": layout.munge_socket,
            "pid-file": private / "munged.pid",
            "seed-file": private / "munged.seed",
            "num-threads": 2,
        }
        # --force: directories below /tmp count as unsafe for munged, and ours are created and owned by us alone.
        options = [f"--{name}={value}" for name, value in flags.items()]
        self._start("munged", [find_program("munged"), "--foreground", "--force", *options], {})
        self._await("munged", f"answers on {layout.munge_socket}", lambda: _accepts_unix(layout.munge_socket))

    def start_accounting(self, where: Address) -> None:
        """The database and slurmdbd, which is to listen at `where`; returns when it does."""
        layout, mariadbd = self._layout, find_program(DATABASE)
        accounting.install_database(mariadbd, layout)
        self._start(DATABASE, accounting.database_argv(mariadbd, layout), {})
        self._await(DATABASE, f"answers on {layout.database_socket}", lambda: _accepts_unix(layout.database_socket))
        env = {**slurm_env(layout), "MYSQL_UNIX_PORT": str(layout.database_socket)}
        self._start(SLURMDBD, [find_program(SLURMDBD), "-D"], env)
        self._await(SLURMDBD, f"listens on {where[0]}:{where[1]}", partial(_accepts, where))

    def start(self, services: Mapping[str, Address]) -> None:
        """Start slurmctld and stewardd, those of them that are named; returns when each listens on its address."""
        env = slurm_env(self._layout)
        path = {"PATH": f"{self._layout.wrappers}:{os.environ.get('PATH', os.defpath)}"}
        programs = {
            "slurmctld": ([find_program("slurmctld"), "-D", "-f", str(self._layout.slurm_conf)], env),
            "stewardd": (
                [sys.executable, "-m", "steward.head", "--config", str(self._layout.steward_toml)],
                env | path,
            ),
        }
        for name in services:
            (self._layout.controller / name).mkdir(exist_ok=True)
            self._start(name, *programs[name])
        for name, where in services.items():
            self._await(name, f"listens on {where[0]}:{where[1]}", partial(_accepts, where))

    def running(self, name: str) -> ProcessKey | None:
        machine = self._machine(name)
        return None if machine is None else machine.program(name)

    def is_stopped(self, name: str) -> bool:
        process = self.running(name)
        seen = None if process is None else proc.look(process.pid)
        return seen is not None and seen.stopped

    def kill(self, name: str) -> None:
        """kill -9; it stays dead until `restart`."""
        if (machine := self._machine(name)) is not None:
            local_machine.kill_program(machine, name)
        wait_until(f"{name} is dead", lambda: self.running(name) is None, _READY_S, every_s=0.01)

    def restart(self, name: str) -> None:
        """Start it again if it is dead; returns when the process is there."""
        if (machine := self._machine(name)) is None:
            raise BedError(f"this bed has no {name}; it was brought up without it (--plain, or no --accounting)")
        local_machine.restart_programs(machine)
        wait_until(f"{name} runs again", lambda: self.running(name) is not None, _READY_S, every_s=0.01)

    def renew(self, name: str) -> None:
        """As systemd does: it is asked to end, killed if it does not, started again; returns when the process is there.

        slurmctld 24.11.5 sometimes answers nobody from SIGTERM on and does not end (it waits in `conmgr_quiesce`).
        """
        self.signal(name, signal.SIGTERM)
        try:
            wait_until(f"{name} has ended", lambda: self.running(name) is None, _READY_S, every_s=0.01)
        except NotInTime:
            self.kill(name)
        self.restart(name)

    def signal(self, name: str, number: signal.Signals) -> None:
        process = self.running(name)
        if process is None:
            raise BedError(f"{name} does not run; look at {self._layout.log(name)}")
        proc.send(process, number)

    def stop_all(self) -> None:
        for name in reversed(SERVICES):
            if (machine := self._machine(name)) is not None:
                local_machine.power_off(machine)

    def _machine(self, name: str) -> Machine | None:
        return local_machine.find(self._state(name))

    def _state(self, name: str) -> Path:
        return self._layout.controller / f"{name}.programs"

    def _start(self, name: str, argv: list[str], env: Mapping[str, str]) -> None:
        program = Program(
            name=name,
            argv=tuple(argv),
            env=own_environment(env),
            log=self._layout.output(name) if name in _OWN_LOG else self._layout.log(name),
            comes_back=name == "stewardd",
        )
        # Machines that stewardd launches are no part of it: they must outlive it.
        local_machine.power_on(
            name, (program,), cwd=self._layout.controller, state=self._state(name), keep_orphans=False
        )

    def _await(self, name: str, readiness: str, ready: Callable[[], bool]) -> None:
        """Raises BedError with the end of its log when it dies, or stands still for the time that it has."""
        try:
            wait_until(
                f"{name} {readiness}",
                lambda: ready() or self.running(name) is None,
                _READY_S,
                every_s=0.01,
                moves=lambda: self._progress(name),
            )
        except NotInTime as error:
            raise BedError(f"{error}; {self._last_words(name)}") from error
        if self.running(name) is None:
            raise BedError(f"{name} ended at once; {self._last_words(name)}")

    def _progress(self, name: str) -> tuple[int, ...]:
        """The controller's use of the processor, and the length of its log."""
        process = self.running(name)
        seen = None if process is None else proc.look(process.pid)
        said = [log.stat().st_size for log in (self._layout.log(name), self._layout.output(name)) if log.exists()]
        return (seen.ticks if seen else 0, *said)

    def _last_words(self, name: str) -> str:
        """The end of its log."""
        for log in (self._layout.log(name), self._layout.output(name)):
            if log.exists() and (lines := log.read_text(errors="replace").splitlines()):
                return f"{log} ends with: {' | '.join(lines[-3:])}"
        return "it wrote no log"


def _accepts(address: Address) -> bool:
    with socket.socket() as trial:
        trial.settimeout(1.0)
        return trial.connect_ex(address) == 0


def _accepts_unix(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(1.0)
        return trial.connect_ex(str(path)) == 0
