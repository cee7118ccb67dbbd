"""Traces: the logits of networks at every step, with their configuration and provenance."""
