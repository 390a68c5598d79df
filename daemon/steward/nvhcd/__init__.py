"""A node-health service that NVIDIA's ft_launcher asks before a node joins a rendezvous (docs/hooks.md).

The service answers with the agent's verdict in the protocol `nvhcd`, in a process of its own, so that the agent needs
no gRPC.
"""
