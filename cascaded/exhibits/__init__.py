"""Exhibits: what there is to show of some runs. Figures as numbers, tables and claims; drawing is the report's."""
