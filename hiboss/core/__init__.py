"""Values and contracts that every other part uses. Nothing here knows the store, a platform or a door."""
