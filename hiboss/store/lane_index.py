"""The two expressions of the unique index of lanes; a query must use them as they are to follow it."""

PLACE, BINDING = "ifnull(address, 0)", "ifnull(binding, 0)"
