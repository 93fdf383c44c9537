"""Joins of three or more streams."""
