"""Stand-ins that keep state, for what is behind the ports."""
