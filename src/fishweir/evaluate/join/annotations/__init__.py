"""RoSeS' annotation join: windows of feeds, and what their items say of others."""
