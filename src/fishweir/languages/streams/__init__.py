"""Declarations of streams."""
