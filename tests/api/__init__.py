"""Tests of hiboss/api."""
