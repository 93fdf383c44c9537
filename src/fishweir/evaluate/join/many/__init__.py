"""Joins of three and more streams."""
