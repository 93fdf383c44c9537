"""The durable catalog: streams, queries, subscriptions, and the version number that counts changes."""
