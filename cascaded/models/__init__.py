"""Residual and dense networks, and plain ones (`vit`, `unet`, `highway`, `gpt`)."""
