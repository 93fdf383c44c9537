"""Spatial Join CQ: algorithms as published, and the experiment."""
