"""Joins between documents: state and shared evaluation."""
