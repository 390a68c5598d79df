"""Instance groups: their goals, slots, gates, updates and hot spares."""
