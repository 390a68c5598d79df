"""Words for end-to-end tests: submit, wait for a sentence to become true, look at Slurm and at Steward as users do."""

import re
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from steward_bed.bed import Bed, BedError
from steward_bed.faults import FaultKind, fault
from steward_bed.wait import ask_head, wait_until

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "PREEMPTED"}

XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=0, GPU has fallen off the bus."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """A job as `scontrol show job` tells it. `fields` are its words, as Slurm writes them."""

    fields: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return self.fields.get("JobState", "GONE")

    @property
    def restarts(self) -> int:
        return int(self.fields.get("Restarts", "0"))

    @property
    def exit_code(self) -> str:
        return self.fields.get("ExitCode", "")

    @property
    def batch_host(self) -> str:
        return self.fields.get("BatchHost", "")


@dataclass(slots=True)
class Story:
    """One test's view of a bed: a directory of its own, and what it submitted."""

    bed: Bed
    dir: Path
    jobs: list[int] = field(default_factory=list)

    def script(self, name: str, text: str) -> Path:
        path = self.dir / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)
        return path

    def submit(self, script: Path, *options: str, arguments: Sequence[str] = (), user: str = "") -> int:
        """sbatch; output goes to `out` in the test's directory, appended over restarts."""
        output = [f"--output={self.dir}/out", "--open-mode=append", f"--chdir={self.dir}"]
        argv = ["sbatch", "--parsable", *output, *options, str(script), *arguments]
        job = int(self.bed.run(argv, user=user).text.strip().split(";")[0])
        self.jobs.append(job)
        return job

    def job(self, job: int) -> JobSeen:
        shown = self.bed.run(["scontrol", "-o", "show", "job", str(job)], check=False)
        return JobSeen(fields=dict(re.findall(r"(\w+)=(\S*)", shown.text)))

    def node_field(self, node: str, name: str) -> str:
        shown = self.bed.run(["scontrol", "-o", "show", "node", node]).text
        found = re.search(rf"\b{name}=(.*?)(?: \w+=|$)", shown.strip())
        return found[1] if found else ""

    def node_state(self, node: str) -> str:
        """`PLANNED` is left out: what backfill has in mind for the node."""
        return self.node_field(node, "State").replace("+PLANNED", "")

    def wait(self, sentence: str, look: Callable[[], object], deadline_s: float = 20.0) -> object:
        return wait_until(sentence, look, deadline_s, seen=self.tell)

    def wait_state(self, job: int, states: str | Iterable[str], deadline_s: float = 20.0) -> JobSeen:
        wanted = {states} if isinstance(states, str) else set(states)
        self.wait(f"job {job} is {' or '.join(sorted(wanted))}", lambda: self.job(job).state in wanted, deadline_s)
        return self.job(job)

    def waited_s(self, job: int) -> float:
        """From submission to start, by Slurm's own clock in whole seconds."""
        told = self.job(job).fields
        submitted, started = (datetime.fromisoformat(told[name]) for name in ("SubmitTime", "StartTime"))
        return (started - submitted).total_seconds()

    def wait_end(self, job: int, deadline_s: float = 30.0) -> JobSeen:
        return self.wait_state(job, ENDED, deadline_s)

    def hurt(self, kind: FaultKind, node: str = "", text: str = "") -> float:
        """Inject a fault; the Unix time just before it."""
        before = time.time()
        self.bed.inject(fault(kind, node, text))
        return before

    def lines(self, name: str) -> list[str]:
        """Complete lines of a file in the test's directory; none when it is not there yet."""
        path = self.dir / name
        return path.read_text().splitlines() if path.exists() else []

    def get(self, path: str) -> Any:
        """Raises BedError, which a `wait` takes for "not yet", while the head is not up."""
        return ask_head(self.bed, path)

    def cases(self, node: str = "", *, since: float = 0.0) -> list[dict[str, Any]]:
        return [case for case in self.get("/v1/cases") if node in ("", case["node"]) and case["opened"] >= since]

    def silent_agents(self) -> list[str]:
        return [node["name"] for node in self.get("/v1/nodes") if not (node["agent"] and node["agent"]["connected"])]

    def wait_case(self, node: str, step: str, deadline_s: float = 30.0, *, since: float = 0.0) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [case for case in self.cases(node, since=since) if case["step"] == step]

        self.wait(f"a case of {node} is at {step}", found, deadline_s)
        return found()[0]

    def events(self, kind: str = "", *, since: float = 0.0) -> list[dict[str, Any]]:
        """Events whose kind begins with `kind`, oldest first."""
        told = self.get("/v1/events?limit=5000")
        return [event for event in told if event["kind"].startswith(kind) and event["at"] >= since]

    def explain(self, what: str) -> str:
        kind = "job" if what[0].isdigit() else "node"
        return "\n".join(self.get(f"/v1/explain/{kind}/{what}")["lines"])

    def instance(self, node: str) -> str:
        return next(status.instance for status in self.bed.status().nodes if status.name == node)

    def tell(self) -> str:
        """What a person would look at when a sentence did not become true."""
        queue = self.bed.run(["squeue", "--all", "-o", "%i %T %r %N %E"], check=False).text
        nodes = self.bed.run(["sinfo", "-o", "%N %T %E"], check=False).text
        output = "\n".join(self.lines("out")[-15:])
        return f"\n{queue}\n{nodes}\n{output}\n{self._head_view()}"

    def _head_view(self) -> str:
        try:
            told = [f"{event['kind']}: {event['text']}" for event in self.events()[-25:]]
        except BedError as error:
            return f"stewardd does not answer: {error}"
        return "\n".join(told)


def task_script(story: Story, name: str = "task.sh") -> Path:
    """A task that writes where it started, then waits for the file `go`."""
    return story.script(
        name,
        f"""echo "$(hostname -s):$SLURMD_NODENAME $SLURM_PROCID attempt=${{STEWARD_ATTEMPT:-1}} \\
restart=${{SLURM_RESTART_COUNT:-0}} $(date +%s.%N)" >>{shlex.quote(str(story.dir))}/started
while [ ! -e {shlex.quote(str(story.dir))}/go ]; do sleep 0.05; done
""",
    )
