"""The daemon with Telegram bots: a real daemon process against the Bot API server of hiboss/testing/bot_api."""
