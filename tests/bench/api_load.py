"""Clients that read the cluster over and over, in a process of their own, as a dashboard and a script would."""

import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.aws_bench import KEY, REGION, AwsBench

CLUSTER = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One call: which, when it was begun (Unix s), and how long it took."""

    operation: str
    at: float
    seconds: float


@contextmanager
def reading(url: str, kept: Path, every_s: float) -> Iterator[Callable[[], list[Read]]]:
    """While it lasts, one client a call; what it yields ends them and tells all reads."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    crowd = context.Process(target=_read_on, args=(url, str(kept), every_s, stop), daemon=True)
    crowd.start()

    def end() -> list[Read]:
        stop.set()
        crowd.join(30.0)
        return [Read(**one) for one in json.loads(kept.read_text())]

    try:
        yield end
    finally:
        crowd.kill()


def _read_on(url: str, kept: str, every_s: float, stop: Any) -> None:
    found: list[dict[str, object]] = []
    calls = {
        "DescribeCluster": lambda client: client.describe_cluster(ClusterName=CLUSTER),
        "ListClusterNodes": lambda client: client.list_cluster_nodes(ClusterName=CLUSTER, MaxResults=100),
    }

    def run(operation: str) -> None:
        client = AwsBench(url=url).boto(KEY)
        while not stop.is_set():
            at = time.time()
            calls[operation](client)
            found.append({"operation": operation, "at": at, "seconds": time.time() - at})
            stop.wait(every_s)

    threads = [threading.Thread(target=run, args=(operation,)) for operation in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Path(kept).write_text(json.dumps(found))


__all__ = ["CLUSTER", "REGION", "Read", "reading"]
