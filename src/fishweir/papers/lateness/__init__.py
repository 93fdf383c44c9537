"""What late items cost: joins over news as it was published, and as it arrives."""
