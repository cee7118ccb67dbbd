"""A trained network on one's own pictures: the answer as it changes over time."""
