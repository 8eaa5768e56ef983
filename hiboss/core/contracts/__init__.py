"""The contracts for authors of adapters and providers.

- `adapter`: what an adapter must do, and the values it gets and returns
- `provider`: the same for a provider
- `failures`: the exceptions that both raise
"""
