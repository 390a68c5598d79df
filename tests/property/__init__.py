"""Properties P1..P12 of the decisions, in simulated worlds with every fault we can think of."""
