"""What adapters and providers must do: `adapter`, `provider`, and the `failures` both report."""
