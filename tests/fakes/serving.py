"""An application behind a real uvicorn on a loopback port."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server

import uvicorn

from tests.fakes.until import until


@contextmanager
def serving(server: uvicorn.Server, scheme: str = "http") -> Iterator[str]:
    """Its URL, while it runs in a thread."""
    listener = create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    until("it serves", lambda: server.started)
    try:
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10.0)
