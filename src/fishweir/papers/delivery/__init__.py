"""Delivery to files, web servers and many subscribers."""
