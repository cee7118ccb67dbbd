"""Learning: the loss, the recipe, the loop, and runs that survive anything."""
