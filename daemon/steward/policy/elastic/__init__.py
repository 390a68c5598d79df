"""Elastic runs: when they grow, when they give back, and what follows."""
