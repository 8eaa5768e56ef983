"""Tests of the MCP door, with the official client."""
