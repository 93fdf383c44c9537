"""Joins between documents: templates and MMQJP's relations; the fast strategy beside them."""
