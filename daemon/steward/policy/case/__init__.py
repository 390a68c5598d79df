"""Cases: one node's repair from suspicion to return."""
