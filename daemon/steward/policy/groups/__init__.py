"""Instance groups: their slots, gates and updates."""
