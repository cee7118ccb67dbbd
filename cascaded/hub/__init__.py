"""Pretrained: networks that come with the package, and one's own in the form of the hub."""
