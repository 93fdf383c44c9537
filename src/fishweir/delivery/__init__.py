"""Results to subscribers: actions, and the dispatcher that remembers what has been delivered."""
