"""Traces: what a network said at every step, and where it came from. The waist between networks and analyses."""
