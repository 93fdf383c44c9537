"""Text to algebra: splits scripts into statements, each of which its language parses."""
