"""The plugin inside Hermes. An exception, a coroutine or an empty message of a hook lets the tool run there, and a hook has
no time limit: each is synchronous, catches everything, waits at most its own deadline, and says no in words."""

import atexit
import copy
import json
import os
import threading
from pathlib import Path

try:
    from .gate_client import Gate
except ImportError:  # loaded by its path, without a package
    import importlib.util

    _spec = importlib.util.spec_from_file_location("policy_hook_fabric_gate", Path(__file__).with_name("gate_client.py"))
    _module = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_module)
    Gate = _module.Gate

VERSION = "1.0.0"
REMEMBERED_MAX = 512
gate = Gate("hermes", VERSION, Path(__file__).parent)
_lock = threading.Lock()
_turns = {}  # task -> (session, turn): calls made by code name nothing but the task
_nested = {}  # task -> number of such calls
_parents = {}  # child session -> the session that started it
_judged = {}  # (session, call) -> the arguments as they were judged
_refused = set()

# Told by other hooks, or too much: whole histories and requests.
LEFT = {"conversation_history", "messages", "request_messages", "request", "response", "assistant_message", "user_message"}
TOLD = (
    "on_session_start",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
    "post_api_request",
    "api_request_error",
    "pre_approval_request",
    "post_approval_response",
    "subagent_start",
    "subagent_stop",
)


def _remember(known, key, value):
    with _lock:
        if len(known) >= REMEMBERED_MAX:
            known.pop(next(iter(known)))
        known[key] = value


def _place(payload, is_new_call=False):
    task = payload.get("task_id") or ""
    session = payload.get("session_id") or payload.get("parent_session_id") or ""
    turn = payload.get("turn_id") or payload.get("parent_turn_id") or ""
    call = payload.get("tool_call_id") or ""
    if session and task:
        _remember(_turns, task, (session, turn or _turns.get(task, ("", ""))[1]))
    if not session and task in _turns:
        session, turn = _turns[task]
    if not session and "tool_name" not in payload:
        # The client's own questions name their turn alone, some events not even that. A call without one is refused.
        session = turn.split(":")[0] or payload.get("session_key") or gate.instance
    if not call and "tool_name" in payload:
        if is_new_call:
            _remember(_nested, task, _nested.get(task, 0) + 1)
        call = f"nested:{task}:{_nested.get(task, 0)}"
    place = {"instance": gate.instance, "directory": os.environ.get("TERMINAL_CWD") or os.getcwd()}
    if payload.get("child_session_id") and session:
        _remember(_parents, payload["child_session_id"], session)
    named = {"session": session, "turn": turn, "call": call, "parent_session": _parents.get(session)}
    return {**place, **{key: value for key, value in named.items() if value}}


def _payload(hook, payload, place):
    return {"hook": hook, "place": place, "payload": {key: one for key, one in payload.items() if key not in LEFT}}


def _block(reason):
    return {"action": "block", "message": reason}


def pre_tool_call(**payload):
    try:
        place = _place(payload, is_new_call=True)
        key = (place.get("session"), place.get("call"))
        answer = gate.ask(_payload("pre_tool_call", payload, place))
        if answer["decision"] in ("deny", "ask"):
            # Not the client's own question: without a person it is answered by nobody, or by "yes" (-z, --yolo).
            with _lock:
                _refused.add(key)
            return _block(answer["reason"])
        args = payload["args"]
        if answer["decision"] == "modify":
            # In place: a returned value is ignored.
            args.clear()
            args.update(answer["input"])
        _remember(_judged, key, copy.deepcopy(args))
        return None
    except Exception as error:
        return _block(f"GATE_UNREACHABLE: the policy hook failed ({type(error).__name__}); the call did not run")


def tool_execution(**payload):
    """The last look before the body: another plugin may have changed the arguments after they were judged."""
    next_call = payload["next_call"]
    try:
        args = payload.get("args")
        place = _place(payload)
        key = (place.get("session"), place.get("call"))
        changed = key in _judged and _judged[key] != args
    except Exception:
        changed = True
    if changed:
        return json.dumps({"error": "PLAN_CHANGED: the arguments changed after they were judged; the call did not run"})
    return next_call(args)


def post_tool_call(**payload):
    try:
        place = _place(payload)
        key = (place.get("session"), place.get("call"))
        with _lock:
            was_refused = key in _refused
            _refused.discard(key)
        if not was_refused:
            gate.tell_result(_payload("post_tool_call", payload, place))
    except Exception:
        gate.lost += 1


def pre_llm_call(**payload):
    try:
        # The prompt is told once; the rest of what this hook is given was told before.
        told = {key: one for key, one in payload.items() if key not in LEFT}
        told["user_message"] = payload.get("user_message")
        gate.tell({"hook": "pre_llm_call", "place": _place(payload), "payload": told}, wait=True)
    except Exception:
        gate.lost += 1


def _teller(hook):
    def tell(**payload):
        try:
            gate.tell(_payload(hook, payload, _place(payload)), wait=hook == "on_session_start")
        except Exception:
            gate.lost += 1

    return tell


def register(ctx):
    gate.tell({"hook": "plugin.loaded", "place": _place({}), "plugin": gate.plugin()})
    ctx.register_hook("pre_tool_call", pre_tool_call)
    ctx.register_hook("post_tool_call", post_tool_call)
    ctx.register_hook("pre_llm_call", pre_llm_call)
    for hook in TOLD:
        ctx.register_hook(hook, _teller(hook))
    ctx.register_middleware("tool_execution", tool_execution)
    atexit.register(gate.flush)
