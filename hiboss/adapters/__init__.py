"""Code connected to platforms: `registry` knows the kinds, `crew` keeps them running, then one
file or room per platform. What one must do is in hiboss/contract.py."""
