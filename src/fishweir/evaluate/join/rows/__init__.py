"""Joins by rows: joins that equal values alone do not decide."""
