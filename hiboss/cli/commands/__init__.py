"""The commands: one file per noun. `hiboss.cli.main` imports the one that was asked for."""
