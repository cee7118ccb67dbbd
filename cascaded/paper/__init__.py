"""The paper's experiments: one item a table or figure, at the paper's scale or a laptop's, through the same code."""
