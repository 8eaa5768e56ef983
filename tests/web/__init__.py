"""Tests of hiboss/web."""
