"""Results to subscribers: outbox, timers, and the outputs that they go to."""
