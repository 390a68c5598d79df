"""Test beds: a whole cluster under Steward, on this machine, with faults at the push of a button."""
