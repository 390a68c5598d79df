"""A job of the ledger that was hit twice: requeued after a node's fault, then retried in its allocation."""

from dataclasses import replace

from steward.model.case import Case, CaseStep, Trigger
from steward.model.ids import CaseId, JobId, NodeName
from steward.model.ledger import Ending, Run
from steward.model.memory import Memory
from steward.model.resume import Decision
from steward.model.why import Why

BEGIN = 1_700_000_000.0
"""2023-11-14 22:13:20 UTC."""
JOB = JobId(7)
LOST = Run(
    job=JOB,
    opted_at=BEGIN,
    restart=0,
    uid=0,
    started=BEGIN,
    name="<train> & co",
    partition="main",
    nodes=frozenset(map(NodeName, ("n1", "n2", "n3", "n10"))),
    first_step=BEGIN + 60,
    step=900,
    stepped=BEGIN + 3599,
    checkpoint_step=850,
    checkpointed=BEGIN + 3400,
    fault=BEGIN + 3600,
    detected=BEGIN + 3601,
    marked=BEGIN + 3602,
    decided=BEGIN + 3603,
    ended=BEGIN + 3604,
    eligible=BEGIN + 3606,
    ending=Ending.REQUEUED,
    decision=Decision.REQUEUE,
    why=Why(rule="resume.requeue", text="a node failed", evidence=("n3: Xid 79",)),
    culprits=frozenset({NodeName("n3")}),
    counted=True,
    cause="kernel_log",
    cases=(CaseId("c1"),),
)
RETRIED = Run(
    job=JOB,
    opted_at=BEGIN,
    restart=1,
    uid=0,
    started=BEGIN + 3620,
    name=LOST.name,
    partition="main",
    nodes=frozenset(map(NodeName, ("n1", "n2", "n4", "n10"))),
    first_step=BEGIN + 3700,
    detected=BEGIN + 6000,
    decided=BEGIN + 6001,
    ended=BEGIN + 6001,
    ending=Ending.RETRIED,
    decision=Decision.RETRY,
    why=Why(rule="resume.retry", text="a node failed; enough others are left"),
    culprits=frozenset({NodeName("n4")}),
    counted=True,
)
LAST = replace(
    RETRIED,
    counted=False,
    attempt=1,
    started=BEGIN + 6001,
    nodes=frozenset(map(NodeName, ("n1", "n2", "n10"))),
    first_step=BEGIN + 6050,
    detected=None,
    decided=None,
    ended=BEGIN + 9000,
    ending=Ending.OVER,
    end_text="COMPLETED",
    decision=None,
    why=None,
    culprits=frozenset(),
)
REPAIR = Case(
    id=CaseId("c1"),
    node=NodeName("n3"),
    trigger=Trigger.FATAL,
    check="kernel_log",
    step=CaseStep.CLOSED,
    entered=BEGIN + 3900,
    opened=BEGIN + 3601,
    why=Why(rule="x", text="Xid 79"),
    fault_at=BEGIN + 3600,
    detected=BEGIN + 3601,
    marked=BEGIN + 3602,
    replaced=BEGIN + 3800,
    returned=BEGIN + 3900,
    closed=BEGIN + 3900,
)


def a_memory() -> Memory:
    return Memory(ledger={JOB: (LOST, RETRIED, LAST)}, cases={REPAIR.id: REPAIR})
