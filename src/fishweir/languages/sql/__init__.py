"""SQL over streams."""
