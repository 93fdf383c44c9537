"""Delivers results to subscribers: outbox, timers, and the outputs."""
