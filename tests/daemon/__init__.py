"""Tests of hiboss/daemon."""
