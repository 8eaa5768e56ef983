"""The package keeps the rules that one file at a time can show."""

from __future__ import annotations

import re
from collections import Counter

from tests.support.sweeps import sweep

from . import sources

# Where everything is caught on purpose, and why.
BROAD_EXCEPTS = {
    "hiboss/store/state_watches.py::tell_due": "a defect in telling costs nobody his change, and the watch stays",
    "hiboss/channels/blocking_calls.py::_Call.run": "what a thread of its own met is raised where it is awaited",
    "hiboss/channels/telegram/rendering.py::_document": "whatever a parser meets in a text, the text is posted",
    "hiboss/core/plugins.py::load": "somebody's module may fail in any way; it is refused with its words",
    "hiboss/api/provider_settings.py::chosen": "a secret that was not stored is forgotten; then it is raised again",
    "hiboss/agents/child_process.py::Process.report": "a program nobody noted is ended; then it is raised again",
    "hiboss/agents/runner.py::Runner._settle_somehow": "a defect in settling is logged, and the run ends all the same",
    "hiboss/agents/runner.py::Runner._run_turn": "a defect in running is logged, and the run ends as failed",
    "hiboss/agents/runner.py::Runner._call_hook": "a defect of another part is logged, and the run is settled",
    "hiboss/agents/process_table.py::_SharedLooks._look": "whatever fails, all who asked hear of it",
    "hiboss/agents/provider_finding.py::made": "whatever a provider raises, its turns will tell",
    "hiboss/agents/provider_finding.py::find": "whatever a provider raises, its agent is changed",
    "hiboss/agents/run_execution.py::Execution.run": "whatever a provider returns, its run has an outcome",
    "hiboss/agents/run_execution.py::Execution.steer": "whatever a provider raises, its run goes on",
    "hiboss/agents/run_execution.py::Execution._interrupt": "whatever a provider raises, it is cancelled then",
    "hiboss/core/work_queue.py::WorkQueue._finished": "what follows one work is logged, and the others go on",
    "hiboss/routing/scheduler.py::Scheduler._heartbeat": "a defect in one task is logged; the next heartbeat comes",
    "hiboss/core/plugins.py::no_exit": "what a plugin raises to end its program becomes an error",
    "hiboss/core/quoting.py::storable": "the text of somebody else's exception may fail to be made",
    "hiboss/core/bounded_calls.py::_outcome": "what a task of its own met is raised where it is awaited",
    "hiboss/channels/supervisor.py::Supervisor._keep_running": "a defect is logged, and the adapter comes back",
    "hiboss/channels/supervisor.py::Supervisor._tell": "a defect is logged, and the adapter comes back",
    "hiboss/channels/supervisor.py::Supervisor._run": "an adapter that crashes is started again and takes nobody down",
    "hiboss/channels/supervisor.py::_stop": "an adapter that cannot stop well is left behind, logged",
    "hiboss/routing/delivery.py::Delivery._serve": "a defect of ours is logged, and what the lane holds is freed",
    "hiboss/api/bindings.py::bind": "secrets of a binding that was not stored are forgotten; then it is raised again",
    "hiboss/routing/change_queue.py::ChangeQueue._work": "whatever an adapter raises: the change is made later",
    "hiboss/routing/chat_setup.py::ChatSetup._make_topic": "whatever an adapter raises: the topic is made later",
    "hiboss/routing/intake.py::Intake._act": "an update that cannot act is given up, told, and holds up no other",
    "hiboss/routing/intake.py::Intake._serve": "a defect of ours is logged, and the chat is digested later",
    "hiboss/routing/intake.py::Intake._digest": "whatever an adapter raises is a failed try of this update alone",
    "hiboss/routing/intake.py::Intake._tell": "an adapter that does not clean up is logged, and nothing depends on it",
    "hiboss/routing/queue_notes.py::QueueNotes._post": "whatever an adapter raises, it is only a note",
    "hiboss/routing/live_posts.py::LivePosts._grow": "whatever an adapter raises, the answer is posted when it comes",
    "hiboss/routing/live_endings.py::LiveEndings._delete": "a live post that cannot be deleted is left, logged",
    "hiboss/routing/live_endings.py::LiveEndings._edit": "a live post that cannot be edited is replaced, logged",
    "hiboss/routing/signs.py::Signs._send": "a sign that fails is dropped, whatever an adapter raises",
    "hiboss/routing/handover.py::Handover.hand_over": "a defect of an adapter makes its own lane wait, logged",
    "hiboss/api/permissions.py::set_policy": "whatever kept a policy from being written; then it is raised again",
    "hiboss/api/dispatch.py::Dispatcher.start": "a defect in one operation is logged and answered, and ends nothing else",
    "hiboss/api/dispatch.py::Dispatcher._finish": "the same, of one that waits",
    "hiboss/api/dispatch.py::Dispatcher._written": "the same, of what is made of a result",
    "hiboss/store/group_commit.py::Writer._answer": "a caller that cannot be told keeps no answer from the others",
    "hiboss/cli/ending.py::run_to_end": "who asked for JSON hears of a defect in JSON; for others it is raised again",
    "hiboss/api/dispatch.py::Dispatcher.receive_webhook": "a defect has one answer, with a reference to the log",
    "hiboss/api/webhooks.py::_keeping": "a secret that was not stored leaves no file; then it is raised again",
    "hiboss/routing/fact_webhooks.py::Follower._store_all": "a defect costs a webhook a gap, and no more",
    "hiboss/cli/hook/program.py::main": "a hook must not show anything on the screen of its harness",
    "hiboss/cli/completion.py::suggest": "a shell that completes a word can show no error: nothing is suggested",
    "hiboss/cli/daemon_process.py::spawn": "an interrupted start leaves no daemon behind; then it is raised again",
    "hiboss/rpc/session.py::Session._run_to_end": "a defect ends its own connection, logged, and no other",
    "hiboss/mcp/daemon_connection.py::Connection.open": "what is not logged in is closed; then it is raised again",
    "hiboss/mcp/stdio_clients.py::StdioClients._connect": "a defect ends its own client, logged, and no other",
    "hiboss/web/guard.py::Guard.__call__": "every failure becomes an answer; a defect is logged, and ends nothing else",
    "hiboss/web/server.py::Gateway._keep_listening": "a defect of this door is logged, and the rest of the daemon goes on",
    "hiboss/routing/presence.py::Presence.flush": "whatever kept it from being written, it is noted again; then raised",
    "hiboss/core/paths.py::Home.keeping": "a token that was not stored leaves no file; then it is raised again",
    "hiboss/core/paths.py::replacing": "the temporary file goes, whatever happened; then it is raised again",
    "hiboss/routing/ask_wakes.py::wake": "a defect with one ask is logged; the others are looked at",
    "hiboss/routing/scheduler.py::Scheduler._loop": "a defect in waking is logged and tried again, and ends nothing",
    "hiboss/store/group_commit.py::Writer._commit_group": "the writer outlives whatever happens to a group",
    "hiboss/store/group_commit.py::Writer._run_in_savepoint": "the same, when the group is written with savepoints",
    "hiboss/store/group_commit.py::Writer._run": "one operation's failure is its own caller's, not its group's",
}

# Imports inside functions: only for the speed of a start, never to dodge a cycle.
LATE_IMPORTS = {
    "hiboss/core/plugins.py::load importlib.import_module": "adapters and providers named in the settings",
    "hiboss/agents/attached/codex_doors.py::_by_daemon websockets.asyncio.client": "60 ms that only Codex needs",
    "hiboss/agents/attached/codex_doors.py::_by_daemon websockets.exceptions": "60 ms that only Codex needs",
    "hiboss/cli/credentials.py::_harness_above .hook.harness": "only where sessions are open, and nobody is named",
    "hiboss/cli/entry.py::main .hook.program": "a hook does not pay for the command line",
    "hiboss/cli/entry.py::main .main": "Typer, which hooks and plain commands do not need",
    "hiboss/cli/entry.py::main .quick.program": "hooks and MCP clients do not pay for it",
    "hiboss/cli/entry.py::main .mcp_stdio.program": "an MCP client does not pay for the command line",
    "hiboss/cli/mcp_stdio/speaker.py::_will_attach ..harness_settings": "only a session that names nobody needs it",
    "hiboss/cli/mcp_stdio/speaker.py::_will_attach ..harness_settings.claude_hooks": "the same",
    "hiboss/cli/mcp_stdio/speaker.py::_will_attach ..harness_settings.codex_hooks": "the same",
    "hiboss/cli/mcp_stdio/speaker.py::_will_attach ..harness_settings.settings_file": "the same",
    "hiboss/cli/mcp_stdio/speaker.py::_sessions_above ..hook": "only where sessions are open, and nobody is named",
    "hiboss/cli/mcp_stdio/speaker.py::_refuse_agents_of_others resource": "only for an agent in the settings of a client",
    "hiboss/cli/mcp_stdio/speaker.py::_refuse_agents_of_others sys": "the same",
    "hiboss/cli/mcp_stdio/speaker.py::_will_attach ..hook": "only a session that names nobody needs it",
    "hiboss/cli/mcp_stdio/program.py::_note ..": "the output, which a client without an error does not need",
    "hiboss/cli/mcp_stdio/program.py::_fail ..": "the same",
    "hiboss/cli/credentials.py::_from_option .": "the output, which MCP clients do not need",
    "hiboss/cli/text_input.py::confirm .": "the output, which MCP clients do not need",
    "hiboss/cli/text_input.py::confirm typer": "Typer, which MCP clients do not need",
    "hiboss/store/store.py::_bring_up_to_date .migrations": "sqlite-utils, 4 MB that only a store with another schema needs",
    "hiboss/core/quoting.py::hide urllib.parse": "3 ms that only a daemon with plugins needs",
    "hiboss/cli/hook/program.py::_note ...core": "the clock, which a waiter does not need",
    "hiboss/cli/hook/program.py::_run .waiter": "only a waiter needs it",
    "hiboss/cli/commands/chat.py::chat ..chat.screen": "prompt_toolkit, which only a conversation in a terminal needs",
    "hiboss/web/metrics.py::exposition prometheus_client.exposition": "65 ms that only a scrape needs",
    "hiboss/web/metrics.py::exposition prometheus_client.metrics_core": "65 ms that only a scrape needs",
    "hiboss/web/server.py::Gateway._listen .": "Starlette and uvicorn, 300 ms after the socket is open, in a thread",
    "hiboss/web/server.py::Gateway._listen_on_all .": "the same: it is loaded by then",
    "hiboss/web/server.py::Gateway._load.load .": "the same",
    "hiboss/web/server.py::Gateway._load.load .door": "the same",
    "hiboss/web/server.py::_not_allowed .guard": "Starlette, which a daemon without HTTP does not need",
    "hiboss/agents/providers/webhook.py::Webhook.take_turn httpx": "240 ms that only webhooks need",
    "hiboss/agents/providers/webhook.py::_client httpx": "240 ms that only webhooks need",
    "hiboss/channels/webhook/posting.py::Poster.post httpx": "240 ms that only webhooks need",
    "hiboss/channels/webhook/posting.py::_new_client httpx": "240 ms that only webhooks need",
    "hiboss/channels/webhook/posting.py::_read httpx": "240 ms that only webhooks need",
    "hiboss/cli/commands/completion.py::_called_from shellingham": "only --shell left out needs it",
    "hiboss/cli/commands/completion.py::_script typer._completion_shared": "only zsh and fish need it",
    "hiboss/cli/commands/config.py::_without_daemon ...core.settings": "the settings table, which other commands do not need",
    "hiboss/cli/commands/config.py::check ...core.settings": "the settings table, which other commands do not need",
    "hiboss/cli/daemon_process.py::check_settings ..core.settings": "the settings table, which other commands do not need",
    "hiboss/cli/key_values.py::_pair json": "only --meta needs it",
    "hiboss/cli/main.py::_noun .typer_commands": "the options of plain commands, which others do not need",
    "hiboss/cli/main.py::declared importlib.import_module": "a command pays for its own noun only",
    "hiboss/cli/quick/program.py::main __import__": "the same",
    "hiboss/cli/call.py::notice_other_version .daemon_process": "subprocess, which only a daemon of another version needs",
    "hiboss/cli/commands/envelope.py::chain ..views": "messages, which other verbs do not show",
    "hiboss/cli/commands/envelope.py::get ..views": "receipts, which other verbs do not show",
    "hiboss/cli/commands/run.py::tail ..run_tail": "only who follows a run needs it",
    "hiboss/core/paths.py::private_socket socket": "only who listens needs it",
    "hiboss/core/paths.py::Home.forget_mcp_sockets fnmatch": "only a daemon that starts needs it",
    "hiboss/core/paths.py::Home._socket warnings": "only a home with a long path needs it",
    "hiboss/cli/main.py::main .completion": "only a shell that completes a word needs it",
    "hiboss/cli/output.py::_titled .text_layout": "only on a terminal are values and errors broken into lines",
    "hiboss/cli/output.py::rendered .text_layout": "only on a terminal are envelopes broken into lines",
    "hiboss/cli/output.py::misused .usage_errors": "only wrong usage needs it",
    "hiboss/cli/output.py::shown .text_layout": "only on a terminal are texts made harmless",
    "hiboss/cli/output.py::table_lines .table_layout": "only a terminal shows tables",
    "hiboss/cli/text_layout.py::_letters wcwidth": "30 ms that Latin letters need not pay",
    "hiboss/cli/text_layout.py::width wcwidth": "30 ms that Latin letters need not pay",
    "hiboss/cli/views/agents.py::agents ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/ask_rules.py::_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/asks.py::_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/contacts.py::contacts ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/conversations.py::_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/presence.py::everybody ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/agents.py::team_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/daemon.py::_settings_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/envelopes.py::_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/envelopes.py::digest ...core": "rendering, which only what shows envelopes needs",
    "hiboss/cli/views/envelopes.py::digest zoneinfo": "only what shows times needs it",
    "hiboss/cli/views/envelopes.py::envelope ...core": "rendering, which only what shows envelopes needs",
    "hiboss/cli/views/envelopes.py::envelope zoneinfo": "only what shows times needs it",
    "hiboss/cli/views/messages.py::_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/messages.py::message ...core": "only a message in full is rendered",
    "hiboss/cli/views/threads.py::_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/runs.py::_table ..table_layout": "only a terminal shows tables",
    "hiboss/cli/views/times.py::lasted datetime": "only what shows times needs it",
    "hiboss/cli/views/times.py::moment datetime": "only what shows times needs it",
    "hiboss/cli/views/times.py::moment zoneinfo": "only what shows times needs it",
    "hiboss/cli/daemon_process.py::_read_report select": "only starting a daemon needs it",
    "hiboss/cli/daemon_process.py::holder fcntl": "only stopping a daemon needs it",
    "hiboss/core/clock.py::_relative dateutil.relativedelta": "15 ms that the CLI need not pay",
    "hiboss/core/clock.py::deliver_at dateutil.relativedelta": "15 ms that the CLI need not pay",
    "hiboss/core/clock.py::local_zone_name tzlocal": "only set-up needs it",
    "hiboss/channels/telegram/adapter.py::_connect .bot_client": "300 ms that only a bound bot needs; in a thread",
    "hiboss/channels/telegram/markdown_reader.py::_parser markdown_it": "40 ms that only Markdown needs",
    "hiboss/channels/telegram/table_layout.py::_width wcwidth": "30 ms that Latin letters need not pay",
    "hiboss/channels/telegram/document_cuts.py::_letter_start wcwidth": "30 ms that Latin letters need not pay",
    "hiboss/core/quoting.py::near difflib": "3 ms that a command without an error need not pay",
    "hiboss/core/paths.py::Home.forget_run_tokens shutil": "only the start of a daemon needs it",
    "hiboss/core/paths.py::Home._socket hashlib": "only a home with too long a path needs it",
    "hiboss/core/paths.py::Home._socket platformdirs": "only a home with too long a path needs it",
}

# Errors declared outside errors.py, and why.
STRAY_ERRORS = {
    "hiboss/cli/client.py::Answered": "it stands for whatever error the daemon answered with",
    "hiboss/mcp/daemon_connection.py::Refused": "the same, in the MCP worker",
}


# Exceptions to a rule: exactly those listed with a reason. The other rules have none.
LISTED: dict[sources.Check, dict[str, str]] = {
    sources.broad_excepts: BROAD_EXCEPTS,
    sources.late_imports: LATE_IMPORTS,
    sources.stray_errors: STRAY_ERRORS,
}


def test_every_file_keeps_the_rules_but_for_the_exceptions_listed_with_a_reason() -> None:
    """One test, so that all files are parsed once."""
    with sweep() as row:
        for check, problems in sources.found("hiboss", "tests", "bench", "docs").items():
            with row(check.__name__):
                listed = LISTED.get(check, {})
                found = Counter(problems)  # counted, so that a second one in the same place shows
                assert list((found - Counter(list(listed))).elements()) == [], "not listed"
                assert list((Counter(list(listed)) - found).elements()) == [], "listed and not there"
                assert all(reason.strip() for reason in listed.values())


def test_sql_files_lie_under_store_only_and_ask_for_no_time() -> None:
    scripts = sources.files("hiboss", ending="sql")
    assert scripts and [path for path, _ in scripts if not path.startswith(sources.STORE)] == []
    assert [one for script in scripts for one in sources.sql_clocks(*script)] == []


def test_only_four_modules_write_to_the_envelope_table() -> None:
    """Its state has too many parts that must agree: its way, what its recipient does, who read and took it."""
    writes = re.compile(r"\b(UPDATE|INSERT INTO|DELETE FROM|REPLACE INTO|INTO) envelope\b", re.IGNORECASE)
    found = {path for path, text in sources.files("hiboss") if writes.search(text)}
    assert found == {
        "hiboss/store/envelopes.py",
        "hiboss/store/envelope_marks.py",
        "hiboss/store/readings.py",
        "hiboss/store/offers.py",
    }
