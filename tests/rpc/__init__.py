"""Tests of hiboss/rpc."""
