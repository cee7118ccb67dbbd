"""Sweeps: many independent runs, side by side or on a cluster."""
