"""The hooks of hiboss in the settings of a harness: Claude Code and Codex.

- `json_text`: edits of JSON text that keep every byte they do not change
- `hook_entries`: our entries in the text of such a file: found, put in, taken out
- `harness`: what a table of hooks is made of, and the command that a hook runs
- `claude_hooks`, `codex_hooks`: the tables: which file, which events, which time limits
- `settings_file`: read, back up, write at once or not at all
- `codex_trust`: ask Codex whether the person has trusted the hooks
- `hook_status`: what is installed, and what a hook last did
"""
