"""Sources of streams: files, changing files, feeds, what is pushed."""
