"""Texts for people about the plan and the memory: explanations, verdicts, messages, reports. Pure. Decide nothing."""
