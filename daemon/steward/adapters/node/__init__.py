"""The machine that the agent stands on: its kernel, processes, GPUs, disks, jobs and users."""
