"""Elastic runs: when they grow, when they give nodes back, and the steps in between."""
