"""RoSeS: algorithms as published, and the experiment."""
