"""Text to algebra: scripts are split into statements and each is parsed by its language."""
