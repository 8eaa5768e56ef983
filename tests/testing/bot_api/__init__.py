"""Tests of hiboss/testing/bot_api, with python-telegram-bot and with plain HTTP."""
