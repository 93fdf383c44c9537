"""Indexes over constants: they find the constants that a value satisfies."""
