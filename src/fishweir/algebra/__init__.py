"""One query: its nodes, normal form and signature, and the naive evaluator that is the oracle."""
