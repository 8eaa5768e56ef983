"""Where an envelope goes: `router` accepts, `scheduler` wakes, `delivery` delivers."""
