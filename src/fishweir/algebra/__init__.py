"""The algebra of a query: nodes, normal form, signature, and the naive evaluator that serves as the oracle."""
