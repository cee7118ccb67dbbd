"""Report: one page about runs, from their results, galleries and activations. It does not import torch."""
