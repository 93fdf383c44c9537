"""An experiment on XPath filters."""
