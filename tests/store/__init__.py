"""Tests of hiboss/store."""
