"""Experiments of the papers: contestants are first checked against each other, then measured in one run."""
