"""The engine: the only layer that sees all others."""
