"""What is cascaded: residual and dense networks."""
