"""Tests of hiboss/core."""
