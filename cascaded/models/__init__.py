"""Residual and dense networks."""
