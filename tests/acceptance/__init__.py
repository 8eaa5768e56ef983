"""The whole program from outside: kills, stories, secrets; and the soak."""
