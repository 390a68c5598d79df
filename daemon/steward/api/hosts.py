"""Requests that are meant for this head: those that name another host are refused before anybody looks at them.

A page in an administrator's browser can give its own name our address (DNS rebinding) and would then read what is open
on loopback; a request that was signed for another endpoint is none of ours.
"""

import ipaddress
import os
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from steward.model.text import printable

_MISDIRECTED = 421


def own_names(*configured: str) -> frozenset[str]:
    """`localhost`, this machine's name with and without its domain, and those of the settings."""
    machine = os.uname().nodename
    return frozenset(name.lower() for name in ("localhost", machine, machine.partition(".")[0], *configured) if name)


def path_of(request: Request) -> str:
    """The path for which the page was chosen, and for which a proof must be good. `request.url` has the caller's Host
    in it, which some versions of Starlette take for a part of the path."""
    return str(request.scope["path"])


class OwnHosts:
    """An address is always taken: no page can have one for its name. A request without Host comes from no browser."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "") if scope["type"] == "http" else ""
        if not host or self._is_ours(_without_port(host).lower().rstrip(".")):
            await self._app(scope, receive, send)
            return
        name = printable(_without_port(host), 100)
        text = f"{name} is not a name of this head; if it should be one, add it to api.host_names"
        answer = JSONResponse({"error": text, "message": text}, status_code=_MISDIRECTED)
        await answer(scope, receive, send)

    def _is_ours(self, name: str) -> bool:
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name in self._names
        return True


def _without_port(host: str) -> str:
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
