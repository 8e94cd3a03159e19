"""Stacks of many ranks: classified, grouped by place, merged into a prefix tree, with the outliers named."""
