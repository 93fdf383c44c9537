"""The shared plan: segments of groups, the registry of their kinds, the planner."""
