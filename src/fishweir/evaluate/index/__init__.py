"""Indexes over constants: which of them does a value satisfy?"""
