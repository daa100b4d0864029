"""Middleware for Microsoft Agent Framework (Python). Install it inside (after) whatever repairs arguments:

    from policy_hook_fabric import create_policy_middleware
    agent = Agent(..., middleware=[*others, *create_policy_middleware(tools={"run_shell": "shell.run"})])

or, where agent-hooks-sdk is used, one interceptor: `create_agent_hooks_middleware([create_policy_interceptor(...)])`.
`tools` says what each function tool is in the words of the policy; one that is not named is `other.<name>`. With
`approvals="content"` a call that needs a person ends the run with the framework's own approval request (its id is the call's, and
`additional_properties` name the ticket); answer it once somebody agreed at the gate. The answer alone lets nothing run: the gate is asked
again. Without, the model gets the ticket's text."""

import asyncio
import contextvars
import json
import os
import threading
import time
import uuid
from pathlib import Path

from agent_framework import AgentMiddleware, ChatMiddleware, Content, FunctionMiddleware, MiddlewareFailure

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
_run = contextvars.ContextVar("policy_hook_fabric_run", default=None)


class _Runs:
    """Which run a session is in: a stream is consumed outside of the run that made it."""

    def __init__(self):
        self.of_session = {}

    def remember(self, session, run):
        if len(self.of_session) >= REMEMBERED_MAX:
            self.of_session.pop(next(iter(self.of_session)))
        self.of_session[session] = run


class _Host:
    def __init__(self, tools, folder, directory, approvals="ticket"):
        if approvals not in ("ticket", "content"):
            raise ValueError("approvals is `ticket` or `content`")
        self.approvals = approvals
        self.gate = Gate("maf", VERSION, folder or Path(__file__).parent)
        self.tools = dict(tools or {})
        self.directory = directory
        self.runs = _Runs()
        self.gate.tell({"hook": "plugin.loaded", "place": self.place(None), "plugin": self.gate.plugin()})

    def place(self, session, **more):
        place = {"instance": self.gate.instance, "directory": self.directory or os.getcwd()}
        run = (self.runs.of_session.get(session) if session else None) or _run.get() or {}
        named = {
            "session": session or run.get("session"),
            "turn": run.get("turn"),
            "parent_session": run.get("parent_session"),
            **more,
        }
        return {**place, **{key: value for key, value in named.items() if value}}

    def tool(self, name):
        return {"tool_name": name, "fabric_tool": self.tools.get(name)}

    async def ask(self, payload):
        # In a thread: a hook that blocks the loop stops every other call, and the time limits with it.
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self.gate.ask, payload, stop)
        except asyncio.CancelledError:
            stop.set()  # Nobody waits for the approval any more.
            raise

    async def tell(self, payload):
        await asyncio.to_thread(self.gate.tell, payload, True)


def _session_of(context):
    session = getattr(context, "session", None)
    return getattr(session, "session_id", None)


def _plain(arguments):
    if arguments is None:
        return {}
    return arguments.model_dump() if hasattr(arguments, "model_dump") else dict(arguments)


def _text(result):
    """A result as a text, of any of the forms that a tool's result can have."""
    items = result if isinstance(result, list) else [result]
    texts = [getattr(item, "text", None) for item in items]
    return "\n".join(text if isinstance(text, str) else repr(item) for text, item in zip(texts, items))[:65536]


class PolicyAgentMiddleware(AgentMiddleware):
    """Names the run, so that its calls have a turn, and tells when it begins and ends."""

    def __init__(self, host):
        self._host = host

    async def process(self, context, call_next):
        host, outer = self._host, _run.get()
        session = _session_of(context) or (f"{host.gate.instance}:{uuid.uuid4().hex[:12]}")
        run = {"session": session, "turn": f"run-{uuid.uuid4().hex}"}
        if outer is not None and outer["session"] != session:
            run["parent_session"] = outer["session"]
        token = _run.set(run)
        is_new = session not in host.runs.of_session
        host.runs.remember(session, run)
        if is_new:
            # The framework tells of no session's start: its first run here stands for it.
            await host.tell({"hook": "session.start", "place": host.place(session), "payload": {}})
        agent = getattr(context, "agent", None)
        prompt = "\n".join(getattr(message, "text", "") or "" for message in context.messages or [])
        payload = {"prompt": prompt, "agent_name": getattr(agent, "name", None), "stream": bool(context.stream)}
        await host.tell({"hook": "agent_run.before", "place": host.place(session), "payload": payload})
        outcome = "succeeded"
        try:
            await call_next()
        except BaseException as error:
            outcome = "failed"
            error_type = type(error).__name__
            raise
        finally:
            ended = {"outcome": outcome, **({"error_type": error_type} if outcome == "failed" else {})}
            # Of a stream nothing has happened yet: its end is not seen here.
            if not context.stream:
                await host.tell({"hook": "agent_run.after", "place": host.place(session), "payload": ended})
            _run.reset(token)


class PolicyChatMiddleware(ChatMiddleware):
    """Tells what each model call used."""

    def __init__(self, host):
        self._host = host

    async def process(self, context, call_next):
        host, started = self._host, time.monotonic()
        await call_next()
        place = host.place(_session_of(context))
        options = context.options or {}

        def told(response):
            usage = getattr(response, "usage_details", None)
            return {
                "hook": "chat.after",
                "place": place,
                "payload": {
                    "model": getattr(response, "model", None) or options.get("model") or "unknown",
                    "response_id": getattr(response, "response_id", None),
                    "finish_reason": str(getattr(response, "finish_reason", None) or ""),
                    "usage_details": {key: value for key, value in dict(usage or {}).items() if value is not None},
                    "duration_ms": round((time.monotonic() - started) * 1000),
                },
            }

        if not context.stream:
            await host.tell(told(context.result))
        else:
            hooks = getattr(context, "stream_result_hooks", None)
            if hooks is not None:

                def when_ended(response):
                    host.gate.tell(told(response))
                    return response

                hooks.append(when_ended)


class PolicyFunctionMiddleware(FunctionMiddleware):
    """Asks before each function call. Its own failure ends the run: an ordinary exception would only look like a failing tool."""

    def __init__(self, host):
        self._host = host

    async def process(self, context, call_next):
        host = self._host
        try:
            name = context.function.name
            metadata = context.metadata or {}
            session = _session_of(context)
            call = metadata.get("function_call_occurrence_id") or metadata.get("call_id") or uuid.uuid4().hex
            place = host.place(session, call=call, **host.tool(name))
            asked = {"arguments": _plain(context.arguments), "call_id": metadata.get("call_id")}
            answer = await host.ask({"hook": "function.before", "place": place, "payload": asked})
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise MiddlewareFailure(f"GATE_UNREACHABLE: the policy hook failed ({type(error).__name__})") from error
        if answer["decision"] == "ask" and host.approvals == "content" and "approval_response" not in metadata:
            context.result = _question(context, metadata, asked["arguments"], answer)
            return
        # Also after a yes to the question, while nobody agreed at the gate: whoever answers here may be whoever asked.
        if answer["decision"] in ("deny", "ask"):
            context.result = answer["reason"]
            return
        if answer["decision"] == "modify":
            # Validated again by the framework.
            context.arguments = answer["input"]
        started, outcome, error_type = time.monotonic(), "succeeded", None
        try:
            await call_next()
        except BaseException as error:
            outcome, error_type = "failed", type(error).__name__
            raise
        finally:
            ended = {
                "arguments": _plain(context.arguments),
                "outcome": outcome,
                "result": _text(context.result) if outcome == "succeeded" else None,
                "error_type": error_type,
                "duration_ms": round((time.monotonic() - started) * 1000),
            }
            told = {key: value for key, value in ended.items() if value is not None}
            host.gate.tell_result({"hook": "function.after", "place": place, "payload": told})


def _question(context, metadata, arguments, answer):
    """The framework's own approval request for this call: it ends the run, and is answered with the session's next one."""
    call_id = metadata["call_id"]
    occurrence = metadata.get("function_call_occurrence_id") or call_id
    call = Content.from_function_call(
        call_id=call_id, name=context.function.name, arguments=json.dumps(arguments, default=repr), id=occurrence
    )
    ticket = {"policy_approval_id": answer["approval_id"], "policy_reason": answer["reason"]}
    return Content.from_function_approval_request(id=occurrence, function_call=call, additional_properties=ticket)


def create_policy_middleware(tools=None, folder=None, directory=None, approvals="ticket"):
    """The three layers that go together; give all of them to the agent. Never raises for what is in `fabric.json`."""
    host = _Host(tools, folder, directory, approvals)
    return [PolicyAgentMiddleware(host), PolicyChatMiddleware(host), PolicyFunctionMiddleware(host)]


class PolicyInterceptor:
    """An interceptor of AGENT-HOOKS-0.1: asks at pre_tool_call, tells the rest. It never blocks the loop."""

    def __init__(self, host):
        self._host = host

    async def intercept(self, context):
        wire = json.loads(json.dumps(context.to_wire() if hasattr(context, "to_wire") else dict(context), default=repr))
        point = wire.get("interception_point")
        call = wire.get("tool_call") or {}
        session = (wire.get("session") or {}).get("id")
        named = self._host.tool(call["name"]) if isinstance(call.get("name"), str) else {}
        place = self._host.place(session, call=call.get("id"), **named)
        # Whole histories and answers are told by nobody: what a hook has to say of them is their size.
        left = ("messages", "response", "output") if point != "input" else ()
        payload = {key: value for key, value in wire.items() if key not in (*left, "target", "tools")}
        told = {"hook": f"agent_hooks.{point}", "place": place, "payload": payload}
        if point != "pre_tool_call":
            if point == "post_tool_call":
                self._host.gate.tell_result(told)
            else:
                await self._host.tell(told)
            return {"decision": "allow"}
        answer = await self._host.ask(told)
        if answer["decision"] == "allow":
            return {"decision": "allow"}
        if answer["decision"] == "modify":
            return {"decision": "transform", "transform": {"path": "$target", "value": answer["input"]}}
        return {"decision": "deny", "reason": answer["reason"]}


def create_policy_interceptor(tools=None, folder=None, directory=None):
    return PolicyInterceptor(_Host(tools, folder, directory))
