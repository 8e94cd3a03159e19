"""Stacks of many ranks as one: grouped by place, merged into a prefix tree, the odd ones out named."""
