"""The machine on which the agent runs: its kernel, processes, GPUs, disks, jobs and users."""
