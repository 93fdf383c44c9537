"""The cost of late items: joins over news in publication order and in arrival order."""
