"""Tests of hiboss/channels."""
