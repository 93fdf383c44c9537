"""The shared path automaton: all paths of all queries of a stream, run once per document."""
