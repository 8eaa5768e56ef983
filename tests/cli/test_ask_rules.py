"""`hiboss ask rules` and `ask rule-remove`, and an answer that is remembered."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import Office
from tests.support.waits import wait_until

PERMITS = """read turn
echo '{"hiboss": "ask", "text": "May I?", "tool": "Bash", "detail": "git push", "subject": "git push"}'
read answer
echo done
"""


def test_a_rule_is_made_listed_and_taken_back_by_commands(office: Office, tmp_path: Path) -> None:
    program = tmp_path / "asks.sh"
    program.write_text(PERMITS)
    name = office.agent(provider="command", settings={"command": f"sh {program}", "input": "open"})
    office("send", name, "work", "--as", "boss")
    [ask] = wait_until(lambda: office("ask", "list", "--as", "boss", "--json").json["asks"])
    refused = office("ask", "answer", ask["id"], "--choice", "allow", "--scope", "session", "--as", "boss")
    assert refused.rc == 1 and "--scope rule" in refused.stderr
    answered = office("ask", "answer", ask["id"], "--choice", "allow", "--scope", "rule", "--as", "boss")
    assert answered.record["scope"] == "rule"
    shown = office("ask", "rules", "--agent", name, "--as", "boss").record
    wanted = {"agent": name, "tool": "Bash", "subject": "git push", "answer": "allow", "ask": ask["id"]}
    assert {key: shown[key] for key in wanted} == wanted
    gone = office("ask", "rule-remove", shown["number"], "--as", "boss").record
    assert (gone["subject"], gone["changed"]) == ("git push", "true")
    assert "no-rules" in office("ask", "rules", "--agent", name, "--as", "boss").stdout
