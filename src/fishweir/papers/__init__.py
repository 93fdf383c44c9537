"""Experiments of the papers: contestants checked against each other first, then measured in one run."""
