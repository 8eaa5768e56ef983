"""Tests of hiboss/agents."""
