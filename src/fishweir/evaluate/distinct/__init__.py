"""`distinct on ... within ...`: pass on the first document of each key among those that queries select."""
