"""Tests of hiboss/routing."""
