"""Setups on the disk of a pretended node, carried out by the real runner."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from steward.adapters.node.setup_dir import Here, SetupDir, SetupJob, Starter
from steward.model.agent_action import SetUpNode
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, Key, NodeName
from steward.model.setup import Lifecycle, SetupReport, SetupState
from steward.model.why import Why
from tests.fakes.until import FACT_S, until

CONFIG = json.dumps(
    {
        "ClusterConfig": {"ClusterArn": "arn:x", "ClusterName": "lab"},
        "InstanceGroups": [
            {
                "Name": "worker",
                "SlurmConfig": {"NodeType": "Compute", "PartitionNames": ["dev"]},
                "Instances": [{"InstanceName": "n1", "InstanceId": "i-1", "CustomerIpAddress": "10.0.0.7"}],
            }
        ],
        "ClusterType": "Slurm",
        "SlurmConfig": {"PrimaryControllerIp": "", "SecondaryControllerIps": []},
    }
)


@dataclass(kw_only=True)
class NodeDisk:
    """`home` is a folder of the test; scripts are written to its `source`."""

    home: Path
    boot: str = "b-1"
    starts: list[str] = field(default_factory=list)
    starter: Starter = field(default_factory=Starter)

    @property
    def source(self) -> Path:
        return self.home / "source"

    @property
    def root(self) -> Path:
        return self.home / "setup"

    @property
    def here(self) -> Here:
        return Here(
            node=NodeName("n1"),
            incarnation=Incarnation(instance=InstanceId("i-1"), boot=BootId(self.boot)),
            head="127.0.0.1",
            config_dir=self.home / "config",
            log=self.home / "log/provisioning.log",
        )

    def script(self, text: str, name: str = "on_create.sh") -> None:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def order(
        self,
        token: str = "t1",
        *,
        hooks: tuple[str, str] = ("on_create.sh", ""),
        sha256: str = "",
        limit_s: float = FACT_S,
    ) -> SetUpNode:
        lifecycle = Lifecycle(source=self.source.as_uri(), on_create=hooks[0], on_init_complete=hooks[1], sha256=sha256)
        return SetUpNode(
            key=Key(f"setup:{token}"),
            why=Why(rule="test", text="new"),
            node=self.here.node,
            token=token,
            lifecycle=lifecycle,
            timeout_s=limit_s,
            resource_config=CONFIG,
            features=frozenset({"worker", "steward"}),
        )

    def begin(self, order: SetUpNode) -> SetupDir:
        """What an agent does on the order."""
        setup = SetupDir(self.root, order.token)
        setup.create(SetupJob(order=order, here=self.here))
        self.start(setup)
        return setup

    def run(self, order: SetUpNode) -> SetupReport:
        """The final report."""
        setup = self.begin(order)
        until("the setup is over", lambda: _is_final(setup.report()))
        report = setup.report()
        assert report is not None
        return report

    @property
    def log(self) -> str:
        return self.here.log.read_text()

    # Start, for an agent

    def start(self, setup: SetupDir) -> None:
        self.starts.append(setup.token)
        self.starter.start(setup)

    def sweep(self, setup: SetupDir) -> None:
        self.starter.sweep(setup)


def _is_final(report: SetupReport | None) -> bool:
    return report is not None and report.state is not SetupState.RUNNING
