"""What tests share: daemons, agents, programs, places, terminals."""
