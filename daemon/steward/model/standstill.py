"""The HTTP header with which the head marks a page while its decisions stand still."""

HEADER = "Steward-Standstill"
