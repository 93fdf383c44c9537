"""MMQJP as published: templates, relations, a conjunctive query per template (section 4), and each query alone."""
