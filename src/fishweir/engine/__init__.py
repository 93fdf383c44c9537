"""The engine: the only stage that sees all others."""
