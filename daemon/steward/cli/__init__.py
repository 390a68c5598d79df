"""`steward`: what people type."""

from steward.cli.main import main

__all__ = ["main"]
