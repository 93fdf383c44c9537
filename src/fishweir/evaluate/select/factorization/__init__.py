"""Filter factorization: the predicates of one source as one tree of shared filters (RoSeS)."""
