"""How the head says with a page that nothing is decided now."""

HEADER = "Steward-Standstill"
