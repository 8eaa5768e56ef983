"""The daemon process: `lifecycle` is the order of its life, `wiring` ties its parts together."""
