"""What head, agents, shims and hooks say to each other: frames, seals, and each message as a value and back."""
