"""A node-health service that NVIDIA's ft_launcher asks before a node joins a rendezvous (docs/hooks.md): the agent's
verdict in the protocol `nvhcd`. A process of its own, so that the agent needs no gRPC."""
