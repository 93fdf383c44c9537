"""Witnesses: what the documents of a batch hold at the paths that queries read."""
