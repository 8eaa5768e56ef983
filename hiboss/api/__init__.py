"""Every operation of hiboss, written once, with its parameters, result, level and errors.

How an operation is declared and called:
- `operation`: the declaration, the registry of all operations, and parameters and results that several share.
- `dispatch`: the only way in. Every door calls it with a method, parameters and a token.
- `param_errors`: explains what is wrong with the parameters of a request.
- `auth`: the caller of a request, found by its token, and the checks of its level.
- `policy`: the level each operation needs now.
- `context`: the parts of the daemon that operations use.
- `addresses`: addresses and bare names in requests, and whose box a request is about.
- `request_limits`: page sizes and waiting times in requests.

The operations, one file per noun:
- `sending`: envelope.send.  `sent_envelopes`: retry, cancel.  `envelopes`: list, get.
- `envelope_marks`: envelope.read, ack, snooze, unsnooze, archive, trash, restore.
- `message_lists`: message.list, get; `message_filters`: what their filters mean.
- `message_marks`: message.markRead.
- `messages`: message.edit, delete, restore.  `threads`: thread.*.
- `unread`: envelope.unread, and `unread_count` for doors.
- `uploads`: upload.list, delete, and `store_upload` for doors that take bytes.
- `downloads`: `open_attachment`, for doors that stream files.
- `leases`: envelope.claim, release.  `long_poll`: envelope.wait, watch, poll, and agent.heartbeat.
- `conversations`: conversation.create, get, list, set, archive, delete; `conversation_shapes`: their form.
- `conversation_messages`: conversation.messages, news, markRead.  `participants`: participant.*.
- `turn_preview`: turn.preview.
- `agent_instructions`: agent.instructions.  `agent_briefing`: agent.briefing.
- `receipts`: how far an envelope got.  `traces`: envelope.trace.
- `agents`: agent.register, list, set, delete, self; `provider_settings` checks an agent's provider.
- `provider_checks`: agent.check; what an agent's provider finds, and what it cannot do.
- `agent_sessions`: agent.sessions, refresh.
- `providers`: provider.list; `option_fields` shows the options of adapters and providers.
- `agent_status`: agent.status, team, pause, resume, background.  `bindings`: agent.bind, unbind, bindings.
- `presence`: presence.*; `agent_states`: the words for it.  `agent_watches`: agent.notify, list, remove.
- `tokens`: agent.token.*.  `permissions`: agent.permission.*, permission.policy.*.
- `breaker`: breaker.pull, release, status.
- `users`: user.*.  `boss`: boss.*.  `schedules`: cron.*.  `runs`: run.*.  `lanes`: lane.*.
- `run_steering`: run.steer.  `asks`: ask.*.  `ask_rules`: ask.rules, ask.rule.remove.
- `setup`: setup.*.  `settings`: config.*.  `daemon`: daemon.*, auth.login.  `discovery`: rpc.discover.
"""
