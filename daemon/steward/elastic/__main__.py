"""Start the coordinator of one elastic run. Its token is in the environment (STEWARD_ELASTIC_TOKEN)."""

import argparse
import asyncio
import logging
import os
import resource
import signal
import socket
from logging.handlers import RotatingFileHandler
from pathlib import Path

from steward.elastic.run import CoordinatedRun
from steward.elastic.server import SILENT_S, Coordinator

MOST_LOG = 128 * 1024
"""A small limit: every refused connection writes a line, and all jobs of the node share the disk of the folder."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m steward.elastic", description=__doc__)
    parser.add_argument("run", help="the base's job id")
    parser.add_argument("--folder", type=Path, required=True, help="the user's folder for socket, address and state")
    parser.add_argument("--nodes", type=int, required=True, help="the base's nodes: the smallest size")
    parser.add_argument("--sizes", default="", help="allowed sizes in nodes, separated by commas (default: any)")
    parser.add_argument("--grace", type=float, default=600.0, help="seconds to save before a node leaves")
    parser.add_argument("--silent", type=float, default=SILENT_S, help="seconds until a silent agent counts as lost")
    parser.add_argument("--listen", default="", help="an address of this machine (default: all)")
    parser.add_argument("--port", type=int, default=0, help="0: any free port, written to FOLDER/address")
    parser.add_argument(
        "--listening", type=int, metavar="FD", help="an inherited socket, in place of --listen and --port"
    )
    options = parser.parse_args()
    token = os.environ.pop("STEWARD_ELASTIC_TOKEN", "")
    if not token:
        parser.error("STEWARD_ELASTIC_TOKEN is not in the environment")
    sizes = tuple(sorted({options.nodes, *(int(size) for size in options.sizes.split(","))})) if options.sizes else ()
    run = CoordinatedRun(base=options.nodes, sizes=sizes, grace_s=options.grace)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection for each node of the run
    options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = RotatingFileHandler(options.folder / "log", maxBytes=MOST_LOG, backupCount=1, delay=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[log])
    coordinator = Coordinator(options.run, run, options.folder, token, silent_s=options.silent)
    inherited = None if options.listening is None else socket.socket(fileno=options.listening)
    asyncio.run(_serve(coordinator, options.listen, options.port, inherited))


async def _serve(coordinator: Coordinator, host: str, port: int, listening: socket.socket | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await coordinator.serve(host, port, stopped, listening)


if __name__ == "__main__":
    main()
