"""Shared code of the experiments: data, timing, tables, plots."""
