"""The messages between head, agents, shims and hooks: frames, seals, and each message as a value and back."""
