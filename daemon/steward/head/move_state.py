"""Move the state of a head that ends to the database that it will share with a second head."""

import os
from collections.abc import Mapping
from pathlib import Path

from steward.adapters.store.engine import SHARED, is_file, open_engine, sqlite_url
from steward.adapters.store.move import move
from steward.head.choose import POWER_STATE, STATIC_STATE
from steward.head.serve import lock_state_dir
from steward.model.settings import Settings
from steward.model.text import cause
from steward.ports import Permanent


def move_state(settings: Settings, source: Path | None) -> Mapping[str, int]:
    """Copy the state into `head.database`; return the number of rows of each table.

    `source` is the SQLite file, the head's own by default. Raises Permanent or Retryable, and has moved nothing then.
    """
    url = settings.head.database.get_secret_value() if settings.head.database else ""
    if not url or is_file(url):
        raise Permanent(f"head.database names no database that two heads can share: {SHARED}")
    file = source or settings.head.state_dir / "steward.db"
    _check_owner(file)
    with lock_state_dir(file.parent):
        before, after = open_engine(sqlite_url(file)), open_engine(url)
        try:
            return move(before, after, _texts(file.parent))
        finally:
            before.dispose()
            after.dispose()


def _check_owner(file: Path) -> None:
    """Raise Permanent unless the file is ours: files that another user makes beside it would shut its head out."""
    try:
        owner = file.stat().st_uid
    except OSError as error:
        raise Permanent(f"{file}: {cause(error)}; name the head's steward.db with --from") from error
    if owner != os.geteuid():
        raise Permanent(f"{file} belongs to uid {owner}: run this as that user, for example with `sudo -u slurm`")


def _texts(folder: Path) -> dict[str, str]:
    """Return the texts of providers' states in the folder, by name."""
    found = {}
    for name in (STATIC_STATE, POWER_STATE):
        try:
            found[name] = (folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Permanent(f"{folder / name}: {cause(error)}") from error
    return found
