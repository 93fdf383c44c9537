"""Load shedding: decides what to leave out under overload, by declared utility relative to cost."""
