"""A Telegram Bot API server for tests: the real rules of the platform, without the platform.

    with BotApi(version="10.3") as api:
        bot = api.add_bot("nexbot")                     # bot.token, bot.pending, bot.inject({…})
        ada = api.add_person("Ada", username="ada")
        chat = ada.starts(bot)                          # or api.private_chat(ada, bot), not yet started
        team = api.add_group("Team", [ada, bot])        # forum=True, supergroup=False, admins=[bot]
        ada.says(chat, "hello")                         # sends_photo, sends_album, edits, reacts, forwards …
        …                                               # let something talk to api.url with bot.token
        answer = chat.wait_for_text("hello yourself")   # or chat.wait_for(lambda messages: …)
        ada.presses(answer, "yes").wait()               # what answerCallbackQuery said
        api.wait_for_call("sendMessage")                # api.calls has them all
        api.fault("sendMessage", bot=bot, retry_after=3)  # chat=chat, do="drop", do="lose_answer", status=502
        api.random_faults(0.2, seed=7)                  # api.carried_out: done, but the caller saw an error
        api.limit()                                     # api.floods: every 429, and who did not wait
        api.advance(hours=25)                           # the clock of the server
        assert chat.visible() == ["…"]                  # chat.log, chat.drafts, message.texts: all ever seen
        assert api.complaints == []                     # what the platform would silently mend or drop

It refuses what the platform refuses, in the platform's words where they are known. It waits with a
condition variable and never asks again and again. A defect of the server itself is raised at the end of
the `with`. `python -m hiboss.testing.bot_api` runs it alone, for trying things with curl.
"""

from .server import BotApi

__all__ = ["BotApi"]
