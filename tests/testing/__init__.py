"""Tests of hiboss/testing."""
