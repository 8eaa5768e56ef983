"""Code connected to platforms: `registry` knows the types of adapters, `supervisor` keeps them running,
then one file or folder per platform. What an adapter must do is in hiboss/core/contracts/adapter.py."""
