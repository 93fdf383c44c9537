"""Witnesses: the nodes of a batch of documents on the paths that queries read."""
