"""Coroutines of one loop that end together."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_together(*parts: Coroutine[Any, Any, None]) -> None:
    """Run all until the first one ends, or until cancelled; then cancel the others and raise the first one's error."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
