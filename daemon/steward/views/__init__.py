"""What people read of the plan and the memory: explanations, verdicts, messages, reports. Pure: nothing is decided."""
