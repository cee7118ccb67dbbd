"""Speed, memory and operations, ours beside the published way, as ratios in one run."""
