"""Cases: the repair of one node from the first suspicion to its return to service."""
