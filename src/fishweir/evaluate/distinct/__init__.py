"""`distinct on ... within ...`: of the documents that queries select, the first of each key."""
