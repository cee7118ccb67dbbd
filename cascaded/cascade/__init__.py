"""Networks in time: the paper's section on deep cascaded networks."""
