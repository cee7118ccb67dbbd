"""Trained networks: those shipped with the package, and the user's own in the format of the Hugging Face hub."""
