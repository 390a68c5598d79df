"""The coordinator of an elastic run, on its base job's batch host, in its user's name: says who takes part."""
