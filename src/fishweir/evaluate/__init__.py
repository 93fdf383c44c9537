"""The evaluator: one shared plan of constant tables over witnesses. Queries are added and removed at run time."""
