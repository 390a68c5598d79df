"""The systemd units that Steward ships, and how they get onto a machine."""
