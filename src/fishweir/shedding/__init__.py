"""What to leave out when more arrives than can be processed: by declared utility, relative to what it costs."""
