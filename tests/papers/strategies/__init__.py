"""The published algorithms as strategies of the running engine."""
