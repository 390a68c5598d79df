"""The coordinator of an elastic run: on the base job's batch host, as its user, it decides which nodes take part."""
