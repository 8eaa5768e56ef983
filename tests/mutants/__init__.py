"""Defects put in on purpose, to see whether the tests find them."""
