"""Tests, in the folders of the package; beside them the whole program (acceptance), shape and docs."""
