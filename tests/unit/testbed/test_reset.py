"""What the next test of a bed finds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from steward.adapters.process import Completed
from steward_bed.bed import BedSpec
from steward_bed.beds import reset


@dataclass
class HeldBed:
    """A bed of one node, whose repair waits for a person until Slurm is told that the node serves again, with a tripped
    breaker and a job of each name in `queue`."""

    url: str
    resumed: list[str] = field(default_factory=list)
    is_tripped: bool = True
    is_late: bool = False
    """Whether the repair begins only after the cases were looked at, and ends by itself."""
    looks: int | None = None
    """How often the cases were looked at since such a repair began."""
    queue: dict[int, str] = field(default_factory=dict)
    shared: Path = Path("/")

    @property
    def spec(self) -> BedSpec:
        return BedSpec(dir=Path("/nowhere"), nodes=1)

    @property
    def env(self) -> Mapping[str, str]:
        return {"STEWARD_URL": self.url}

    @property
    def is_back(self) -> bool:
        return bool(self.resumed) or (self.is_late and (self.looks is None or self.looks > 2))

    def restore(self) -> None:
        pass

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        if argv[0] == "scontrol" and "state=resume" in argv:
            self.resumed += argv
        if list(argv) == ["steward", "breaker", "reset", "--yes"]:
            self.is_tripped = False
        if argv[0] == "scancel":
            self.queue = {job: name for job, name in self.queue.items() if str(job) not in argv}
        said = {
            "sinfo": f"n1 {'idle' if self.is_back else 'drained'}\n",
            "squeue": "".join(f"{job} PENDING {name}\n" for job, name in self.queue.items()),
        }.get(argv[0], "")
        return Completed(argv=tuple(argv), returncode=0, stdout=said.encode(), stderr=b"", seconds=0.0, truncated=False)

    def page(self, path: str) -> Any:
        if self.is_late and path == "/v1/breakers":
            self.looks = self.looks or 0
        if self.is_late and path == "/v1/cases":
            self.looks = None if self.looks is None else self.looks + 1
            return [{"node": "n1", "step": "drain", "open": self.looks is not None and self.looks < 5}]
        if path == "/v1/cases":
            return [{"node": "n1", "step": "held", "open": not self.resumed}]
        if path == "/v1/breakers":
            return [{"scope": "group:main"}] if self.is_tripped else []
        return [{"name": "n1", "verdict": "fine", "agent": {"connected": True}}]


@contextmanager
def a_held_bed() -> Iterator[HeldBed]:
    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(bed.page(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Pages)
    bed = HeldBed(url=f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield bed
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_node_whose_repair_waits_for_a_person_is_given_back() -> None:
    with a_held_bed() as bed:
        reset(bed)  # type: ignore[arg-type]
        assert "nodename=n1" in bed.resumed


def test_a_node_that_is_taken_out_meanwhile_is_left_to_its_repair() -> None:
    """A resume would be a person's word: the head would leave that fault of that machine alone in the next stories."""
    with a_held_bed() as bed:
        bed.is_late = True
        reset(bed)  # type: ignore[arg-type]
        assert bed.resumed == []


def test_the_next_stories_fault_is_not_only_reported() -> None:
    with a_held_bed() as bed:
        reset(bed)  # type: ignore[arg-type]
        assert not bed.is_tripped


def test_no_job_is_left_but_those_of_a_name_that_is_to_stay() -> None:
    with a_held_bed() as bed:
        bed.queue = {1: "train", 2: "of others", 3: "of others"}
        reset(bed, but="of others")  # type: ignore[arg-type]
        assert bed.queue == {2: "of others", 3: "of others"}
        reset(bed)  # type: ignore[arg-type]
        assert bed.queue == {}
