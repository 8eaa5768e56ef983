"""Tests of the documentation: every name on a page exists, and every command works."""
