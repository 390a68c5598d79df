"""The access keys of the AWS endpoint: a TOML file that only its owner can read.

[keys.AKIDPLATFORM00000001]
secret = "40 random characters"
user = "platform"
read_only = false
"""

import os
import re
import stat
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from steward.model.access import AccessKey
from steward.model.section import Section
from steward.model.settings.errors import dotted
from steward.ports import Permanent

_MAX_BYTES = 1 << 20
_ACCESS_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ID = re.compile(r"[A-Za-z0-9_]{4,128}")

Version = tuple[int, int, int, int]


class _Key(Section):
    secret: Annotated[str, Field(min_length=20, max_length=256)]
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$")]
    read_only: bool = False


class _File(Section):
    keys: dict[str, _Key]


class KeysFile:
    """The file of access keys, read again whenever it changes. Safe to use from several threads.

    `owners` are the uids that may own the file.
    """

    def __init__(self, path: Path, owners: frozenset[int]) -> None:
        self._path, self._owners = path, owners
        self._lock = threading.Lock()
        self._version: Version | None = None
        self._keys: Mapping[str, AccessKey] = {}

    def key(self, id: str) -> AccessKey | None:
        """Return the access key, or None if it does not exist.

        Raises Permanent, with the remedy, if the file cannot be used.
        """
        with self._lock:
            self._refresh()
            return self._keys.get(id)

    def _refresh(self) -> None:
        """Read the file if it changed; a bad file leaves no keys."""
        try:
            # The open file is checked, so that the checked file is the one read.
            with open(self._path, "rb") as file:
                found = os.fstat(file.fileno())
                self._check_private(found)
                if _version(found) != self._version:
                    self._version, self._keys = None, {}
                    self._keys = _keys(file.read(_MAX_BYTES + 1), self._path)
                    self._version = _version(found)
        except OSError as error:
            raise self._unusable(f"{error.strerror}; make it, owned by SlurmUser, with mode 0600") from error

    def _check_private(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise self._unusable("it is not a plain file")
        if found.st_uid not in self._owners:
            raise self._unusable(f"it belongs to uid {found.st_uid}; give it to SlurmUser (or root) with chown")
        if found.st_mode & _ACCESS_BY_OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            raise self._unusable(f"others may use it (mode {mode:04o}); run chmod 0600 on it, and change its secrets")

    def _unusable(self, why: str) -> Permanent:
        return Permanent(f"access keys {self._path}: {why}")


def _version(found: os.stat_result) -> Version:
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def _keys(content: bytes, path: Path) -> Mapping[str, AccessKey]:
    """Return the keys in the file. No error shows a value, which might be a secret."""
    if len(content) > _MAX_BYTES:
        raise Permanent(f"access keys {path}: more than {_MAX_BYTES} bytes")
    try:
        table = _File.model_validate(tomllib.loads(content.decode()))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise Permanent(f"access keys {path}: {dotted(first['loc'])}: {first['msg']}") from None
    except ValueError:
        raise Permanent(f"access keys {path}: not TOML; write [keys.ID] with secret and user") from None
    if wrong := next((id for id in table.keys if not _ID.fullmatch(id)), None):
        raise Permanent(f"access keys {path}: keys.{wrong[:40]!r}: use 4 to 128 letters, digits and _ as its id")
    return {
        id: AccessKey(id=id, secret=key.secret, user=key.user, read_only=key.read_only)
        for id, key in table.keys.items()
    }
