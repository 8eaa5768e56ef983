"""The emojis that a bot can put on a message: Telegram has a fixed list of them."""

from __future__ import annotations

_SELECTOR = "\ufe0f"  # asks for the coloured form; people and programs write it or leave it out
# As Telegram spells them: most without the selector, some with it.
_LIST = """
❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤️‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾
💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂️ 🤷 🤷‍♀️ 😡
"""
_BY_BARE_FORM = {one.replace(_SELECTOR, ""): one for one in _LIST.split()}
# All spellings that are understood.
EMOJIS = frozenset(
    spelling
    for bare, one in _BY_BARE_FORM.items()
    for spelling in (bare, one, bare + _SELECTOR if len(bare) == 1 else one)
)


def spelled(emoji: str) -> str:
    """Return an emoji as Telegram spells it; one that it does not have as it is."""
    return _BY_BARE_FORM.get(emoji.replace(_SELECTOR, ""), emoji)
