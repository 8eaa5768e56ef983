"""The documentation: pages written by hand, and `generate`, which makes the reference from the code."""
