"""The HTTP header that marks a page while the head makes no decisions."""

HEADER = "Steward-Standstill"
