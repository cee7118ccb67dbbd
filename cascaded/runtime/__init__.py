"""Use a trained network: early exit, latency, and predictions for your own images."""
