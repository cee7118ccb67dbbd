"""Results: which analyses the recorded traces of runs allow, and what came out of them."""
