"""XSCL: tree patterns and joins between documents."""
