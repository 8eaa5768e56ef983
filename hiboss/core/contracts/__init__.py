"""The contracts for authors of adapters and providers.

- `adapter`: what an adapter must do, and the values it gets
- `inbound`: what an adapter hands over: updates, and what they mean
- `provider`: what a provider must do, and the values it gets and returns
- `failures`: the exceptions that both raise

docs/reference/contracts.md is made from them: docstrings, and the comment of each field.
"""
