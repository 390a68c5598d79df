"""The systemd units that Steward ships, and their installation."""
