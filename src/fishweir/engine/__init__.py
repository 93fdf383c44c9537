"""The engine: the only layer that imports all others."""
