"""Lifecycle scripts from where they are kept. Nothing that is fetched leaves its folder or exceeds its budget."""
