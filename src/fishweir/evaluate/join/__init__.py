"""Joins between documents: state, shared evaluation, and MMQJP as published."""
