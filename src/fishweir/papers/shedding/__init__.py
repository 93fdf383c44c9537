"""Utility-driven shedding (Wei, Rundensteiner, Mani, WWW 2008): the experiments of section 7."""
