"""The local bed: real slurmctld, slurmds and munged as processes of this machine, below one directory."""

import getpass
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from steward.adapters.process import Completed, Failed, run
from steward.adapters.providers.local import LocalProvider
from steward.model.instance import Slot
from steward.ports import PortError
from steward.testbed import accounting, local_setup, strays
from steward.testbed.bed import BedError, BedSpec, BedStatus, NodeStatus, Say
from steward.testbed.faults import SHAPES, Fault
from steward.testbed.layout import Layout
from steward.testbed.local_controller import Controller, services_of
from steward.testbed.local_faults import LocalFaults
from steward.testbed.local_setup import Manifest, slurm_env, steward_env
from steward.testbed.local_symptoms import faults_in_force, names_of, power
from steward.testbed.local_user import as_user
from steward.testbed.ready import await_ready, call_silent_nodes, node_states
from steward.testbed.slurm_conf import LOOPBACK


class LocalBed:
    """A Bed (see bed.py) of this machine's own Slurm packages."""

    def __init__(self, spec: BedSpec) -> None:
        self._given = spec
        self._layout = Layout(root=spec.dir)
        self._controller = Controller(self._layout)
        self._provider = LocalProvider(spec.dir)
        self._faults = LocalFaults(self._layout, self._controller, self._provider)

    @property
    def spec(self) -> BedSpec:
        return self._manifest.spec if self._layout.manifest.exists() else self._given

    @property
    def shared(self) -> Path:
        return self._layout.shared

    @property
    def env(self) -> Mapping[str, str]:
        own = {**slurm_env(self._layout), **steward_env(self._layout, self._manifest)}
        return {**own, "STEWARD_TESTBED": str(self._layout.root)}

    def up(self, say: Say) -> None:
        try:
            manifest = local_setup.prepare(self._layout, self._given)
            say(f"Slurm {manifest.slurm} in {self._layout.root}")
            self._start(manifest, say)
        except PortError as error:
            raise BedError(f"the local bed did not come up: {error}") from error

    def down(self) -> None:
        if not self._layout.root.exists():
            return
        if not self._layout.manifest.exists():
            if any(self._layout.root.iterdir()):
                raise BedError(f"{self._layout.root} holds no bed; nothing was touched")
            self._layout.root.rmdir()
            return
        try:
            self._controller.stop_all()
            for instance in self._provider.instances():
                self._provider.terminate(instance)
            strays.end(self._layout.root)
        except PortError as error:
            raise BedError(f"{self._layout.root}: {error}") from error
        shutil.rmtree(self._layout.root)

    def status(self) -> BedStatus:
        manifest = self._manifest
        return BedStatus(
            dir=self._layout.root,
            backend=manifest.spec.backend,
            slurm=manifest.slurm,
            nodes=self._nodes(manifest),
            services={name: self._controller.running(name) is not None for name in services_of(manifest.spec)},
            faults=tuple(str(fault) for fault in self._in_force()),
            env=self.env,
        )

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, user: str = "") -> Completed:
        return run(as_user(user, argv), timeout_s=timeout_s, env=self.env, cwd=self.shared, check=check)

    def inject(self, fault: Fault) -> None:
        known = names_of(self._manifest, self._provider)
        if fault.node is not None and fault.node not in known:
            raise BedError(f"{fault.kind.value}: no node {fault.node} in this bed; it has {', '.join(known)}")
        try:
            self._faults.inject(fault)
        except PortError as error:
            raise BedError(f"{fault.kind.value}: {error}") from error

    def restore(self) -> None:
        for fault in self._in_force():
            if (undo := SHAPES[fault.kind].undo) is not None:
                self.inject(Fault(kind=undo, node=fault.node))

    def logs(self) -> Mapping[str, Path]:
        return {path.stem: path for path in sorted((self._layout.root / "log").glob("*.log"))}

    @property
    def _manifest(self) -> Manifest:
        if not self._layout.manifest.exists():
            raise BedError(f"no bed in {self._layout.root}; `steward testbed up --dir {self._layout.root}` makes one")
        return local_setup.load(self._layout)

    def _in_force(self) -> list[Fault]:
        return list(faults_in_force(self._layout, self._manifest, self._controller, self._provider))

    def _start(self, manifest: Manifest, say: Say) -> None:
        spec = manifest.spec
        # The head first: an agent that finds it at once need not try again.
        self._controller.start_munged()
        if spec.accounting:
            self._controller.start_accounting((LOOPBACK, manifest.slurmdbd))
        services = {"slurmctld": (LOOPBACK, manifest.slurmctld)}
        self._controller.start(services | ({"stewardd": (LOOPBACK, manifest.http)} if spec.steward else {}))
        for group, names in (("main", spec.node_names), ("spare", spec.spare_names)):
            for name in () if spec.groups else names:
                self._provider.launch(Slot(node=name, group=group), f"bed-{name}")
        say("controller and nodes are started")
        if spec.accounting:
            accounting.let_in(self, [getpass.getuser()])
        call_silent_nodes(self)
        await_ready(self)
        say("every node is idle" + (", every agent connected" if spec.steward else ""))

    def _nodes(self, manifest: Manifest) -> tuple[NodeStatus, ...]:
        try:
            states = node_states(self)
        except Failed:
            states = {}
        ids = {each.node: each.id for each in self._provider.instances().values()}
        return tuple(
            NodeStatus(
                name=name, power=power(self._provider, name), instance=ids.get(name, ""), slurm=states.get(name, "")
            )
            for name in names_of(manifest, self._provider)
        )
