"""Selections: queries over one document (n = 1), evaluated by constant tables, regions, twigs and filter plans."""
