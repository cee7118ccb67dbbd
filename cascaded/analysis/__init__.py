"""Analyses: everything the paper measures, as functions of traces. No network is run here, none is imported."""
