"""Tests of hiboss/cli."""
