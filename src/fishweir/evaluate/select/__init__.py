"""Selections: queries of one document (n = 1), by constant tables, regions, twigs and filter plans."""
