"""An agent that speaks the Agent Client Protocol and follows a plan: a real process, for fast tests.

python3 acp_agent.py plan.json

The plan, a JSON object, has what is answered to each method: {"result": …} or {"error": …}, and for
`session/prompt` a list of steps for each prompt. Without a plan for a method, a usual answer is given. It writes
beside the plan: `received` (each line it got), `given` (the text of the prompt), `turns` (a line for each prompt),
`session` (the session it was asked to resume).
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False  # `typing`, like what is imported below, takes as long as the rest of the start
if TYPE_CHECKING:
    from typing import Any

with open(sys.argv[1], encoding="utf-8") as plan:
    PLAN = json.load(plan)
USUAL: dict[str, Any] = {
    "initialize": {
        "protocolVersion": 1,
        "agentInfo": {"name": "scripted", "version": "1.2"},
        "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
        "authMethods": [],
    },
    "session/new": {"sessionId": "s-new"},
}
received: list[Any] = []
session = ""


def note(name: str, text: str) -> None:
    """Write a file in one step: a test may read it at any moment."""
    with open(f"{name}.new", "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    os.rename(f"{name}.new", name)


def add(name: str, line: str) -> None:
    with open(name, "a", encoding="utf-8", errors="surrogatepass") as file:
        file.write(line)


def write(line: Any) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
    sys.stdout.buffer.flush()


def read() -> Any:
    """Return the next message; the program ends with its input."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    add("received", line.decode())
    return json.loads(line)


def until(condition: Any) -> Any:
    """Return the first message that fits, among those that came and those that come."""
    while True:
        for place, one in enumerate(received):
            if condition(one):
                return received.pop(place)
        received.append(read())


def update(content: Any) -> None:
    write({"method": "session/update", "params": {"sessionId": session, "update": content}})


def say(text: str, **more: Any) -> None:
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more})


def write_raw(given: str) -> None:
    from base64 import b64decode

    sys.stdout.buffer.write(b64decode(given))
    sys.stdout.buffer.flush()


def flood(text: str) -> None:
    while True:
        say(text)


def start_children(count: int) -> None:
    for _ in range(count):
        os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")


def hang(_: Any) -> None:
    while True:
        received.append(read())


def wait_for(name: str) -> None:
    while not os.path.exists(name):
        time.sleep(0.01)


def leave(given: Any) -> None:
    sys.stderr.write(f"{given[1]}\n")
    sys.stderr.flush()
    os._exit(given[0])


STEPS: dict[str, Any] = {
    "update": update,
    "raw": write_raw,
    "flood": flood,
    "children": start_children,
    "wait": lambda method: until(lambda line: line.get("method") == method),
    "hang": hang,
    "file": wait_for,
    "send": lambda line: write(line),
    "answered": lambda number: note("answers", json.dumps([answer_to(number)])),
    "exit": leave,
    "ask": lambda given: ask(*given),
}


def ask(requests: list[dict[str, Any]], shown: str = "{answers}") -> None:
    """Send requests, wait for all answers, and say them."""
    for number, one in enumerate(requests):
        write({"id": f"a{number}", **one})
    answers = [answer_to(f"a{number}") for number in range(len(requests))]
    note("answers", json.dumps(answers))
    if shown:
        say(shown.format(answers=json.dumps(answers), chosen=" ".join(map(chosen, answers))))


def answer_to(number: Any) -> Any:
    """Wait for the answer to a request of ours."""
    line = until(lambda line: line.get("id") == number and "method" not in line)
    return line.get("result", line.get("error"))


def chosen(answer: Any) -> str:
    """Return what was chosen, in words."""
    if "outcome" in answer:
        return str(answer["outcome"].get("optionId", answer["outcome"]["outcome"]))
    content = answer.get("content", {})
    return " ".join(f"{name}={value}" for name, value in content.items()) or str(answer.get("action"))


def prompt(line: Any, steps: list[dict[str, Any]]) -> None:
    note("given", line["params"]["prompt"][-1]["text"])
    add("prompts", json.dumps([one["text"] for one in line["params"]["prompt"]]) + "\n")
    add("turns", "once\n")
    answer: dict[str, Any] = {"result": {"stopReason": "end_turn"}}
    for one in steps:
        if "result" in one or "error" in one:
            answer = one
        else:
            [(name, content)] = one.items()
            STEPS[name](content)
    write({"id": line["id"], **answer})


def answer(line: Any) -> None:
    """Answer a call of hiboss."""
    global session
    method, given = line["method"], line.get("params", {})
    if method == "session/prompt":
        prompts = PLAN.get(method, [])
        prompt(line, prompts.pop(0) if len(prompts) > 1 else prompts[0] if prompts else [])
        return
    if method in ("session/resume", "session/load"):
        note("session", given["sessionId"])
        session = given["sessionId"]
    planned = PLAN.get(method) or {"result": USUAL.get(method, {})}
    for one in planned.get("replay", []):
        update(one)
    session = planned.get("result", {}).get("sessionId", session)
    if planned.get("silent"):
        return
    write({"id": line["id"], **{name: planned[name] for name in ("result", "error") if name in planned}})


if __name__ == "__main__":
    while True:
        answer(until(lambda line: "method" in line and "id" in line))
