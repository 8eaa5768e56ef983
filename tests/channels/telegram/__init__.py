"""The Telegram adapter, tested against the Bot API server of hiboss/testing/bot_api."""
