"""The store: all SQL of hiboss, over one SQLite file. The rules about callers are in `api`, not here.

- `store`: opens the store, runs reads and writes; `connection`: opens SQLite and translates its errors
- `group_commit`: the one writer thread; `writer_cache`: what it keeps in memory between groups
- `migrations`, `schema/`: the schema and its versions; `invariants`: what must be true of every database
- `messages`: writes drafts; `envelopes`: reads, acknowledges, moves, cancels and retries envelopes
- `due_envelopes`: what is due, in order; `overdue`: the next time to act, and arrivals of deferred mail
- `lanes`, `posts`, `leases`: delivery to channels, and claims of pull agents
- `provider_sessions`, `session_scopes`, `session_policy`: the memory of providers, whose it is, when it ends
- `turn_selection`, `run_start`, `run_settlement`, `run_history`, `run_limits`: turns and runs of agents
- `run_turns`: the texts of the latest turns
- `agents`, `agent_pauses`, `users`, `boss`, `tokens`, `policy`, `addresses`: who exists and who may do what
- `bindings`, `places`, `topics`: platform accounts, their chats and the topics of these
- `chat_moves`, `gone_topics`, `own_topics`: chats with another id, topics that are gone, topics of agents
- `intake`, `platform_updates`, `message_edits`: what came in from platforms, and the messages it became
- `conversations`, `paging`, `poll_positions`: reading conversations and lists
- `schedules`, `notices`, `counters`: schedules, messages of the system, numbers of the store
- `chat_notes`: what people are told in their chats when no answer comes
"""
