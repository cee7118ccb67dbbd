"""Recording: networks are run once, and what they say at every step is kept as a trace."""
