"""Joins by rows: what equal values alone do not decide."""
