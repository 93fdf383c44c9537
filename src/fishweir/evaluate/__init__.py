"""All queries: one shared plan of constant tables over witnesses, added to and removed from at run time."""
