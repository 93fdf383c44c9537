"""What is registered, durable: streams, queries, subscriptions, and the version that counts changes."""
