"""Sources of streams: files, changing files, feeds, pushed documents."""
