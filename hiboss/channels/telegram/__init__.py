"""The Telegram adapter: one bot, its chats and their topics.

- `adapter`: what the daemon calls
- `bot_client`: calls of the Bot API, the only module that imports python-telegram-bot
- `api_errors`: what can go wrong with a call, and what that means for an envelope, a chat or the account
- `polling`: fetches updates and hands them over, with a position that loses none
- `decode`, `message_facts`, `message_text`, `message_kinds`: what a raw update means; pure functions
- `digestion`, `message_files`, `downloads`, `transcription`: the second stage: albums, files, voice messages
- `letter_chunks`, `rendering`, `chunk_form`: which posts a letter becomes; pure functions
- `markdown_reader`, `markdown_rules`, `html_reader`, `link_targets`, `document_builder`, `table_layout`: read
  a text into a `formatted_document`
- `document_cuts`, `entity_form`, `rich_form`: cut it into posts, and write each of them
- `posting`, `file_posting`, `file_kinds`, `flood_watch`: what goes out and stays
- `signs`, `reactions`: what goes out beside the posts
- `account_check`: who the bot is, and what its owner should know
"""
