"""The file in which the agent keeps the elastic runs of its node over a restart: with their secrets, root's alone."""

import logging
from collections.abc import Iterable
from pathlib import Path

from steward.adapters.node.elastic_start import Place
from steward.adapters.whole_file import read_json, write_json
from steward.adapters.wire.codec import text, whole
from steward.adapters.wire.messages import opted_of, opted_record, record_of
from steward.model.ask import OptedIn
from steward.ports import PortError

log = logging.getLogger(__name__)


def write_runs(path: Path, runs: Iterable[tuple[OptedIn, Place]]) -> None:
    """The log says it where that is not possible."""
    records = [{"opted": opted_record(opted), "port": place.port, "token": place.token} for opted, place in runs]
    try:
        write_json(path, records)
        path.chmod(0o600)
    except (PortError, OSError) as error:
        log.warning("elastic runs not saved why=%r", str(error))


def read_runs(path: Path) -> list[tuple[OptedIn, int, str]]:
    """The saved runs: what each job asked for, its port and its secret."""
    found = []
    records = read_json(path)
    for value in records if isinstance(records, list) else []:
        try:
            record = record_of(value)
            opted = opted_of(record.get("opted"))
            found.append((opted, whole(record, "port", low=1, high=65535), text(record, "token", 64)))
        except PortError as error:
            log.warning("elastic run dropped from=%s why=%r", path, str(error))
    return found
