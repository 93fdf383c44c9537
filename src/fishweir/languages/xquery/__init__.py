"""XQuery: for, where and return over one stream, with preferences (utility-driven shedding, section 2.1)."""
