"""Asks the gate from inside a Python runtime. Standard library alone: it runs in somebody else's process. Whatever goes
wrong in front of a tool is a no, and nothing here raises. `fabric.json` beside the plugin says where the gate is."""

import hashlib
import http.client
import json
import os
import queue
import re
import secrets
import threading
import time
import urllib.parse
from pathlib import Path

DEFAULTS = {
    "deadline_ms": 2_000,
    "observe_deadline_ms": 3_000,
    "spool_max_bytes": 4 * 1024 * 1024,
    "approval_wait_ms": 0,
    "approval_poll_ms": 1_000,
}
OWN_FILES = {".py", ".json", ".yaml"}
# A process that took the spool and is this long silent is gone; another one delivers what it left.
LEFT_BEHIND_S = 60
# The gate answers a hook in its own form, also where it does not know who speaks: nothing was taken then.
NOT_KNOWN = re.compile(rb'"reason":\s*"(?:TOKEN|ROLE|TENANT)_')
JSON_TYPE = re.compile(r"application/(?:problem\+)?json\b", re.IGNORECASE)
ANSWER_MAX_BYTES = 16 * 1024 * 1024


def refusal(code, what):
    """A no that says what is wrong and what to do."""
    text = f"{code}: {what}; the call did not run. Try again later, or ask whoever runs the policy gate"
    # Ours, and no word of the gate.
    return {"decision": "deny", "reason": text, "is_own": True}


def to_answer(body):
    """Only what is understood whole is an answer."""
    if isinstance(body, dict):
        decision, reason = body.get("decision"), body.get("reason")
        has_reason = isinstance(reason, str) and reason.strip() != ""
        if decision == "allow":
            return {"decision": "allow"}
        if decision == "modify" and isinstance(body.get("input"), dict):
            return {"decision": "modify", "input": body["input"]}
        if decision == "deny" and has_reason:
            return {"decision": "deny", "reason": reason}
        if decision == "ask" and has_reason and isinstance(body.get("approval_id"), str):
            return {"decision": "ask", "reason": reason, "approval_id": body["approval_id"]}
    return refusal("GATE_UNREACHABLE", "the policy gate's answer is not understood")


def fate_of(status, answer):
    """What became of a report. `again`: a server that is ill, one that is not the gate, or a token that is renewed, which a
    report is not. A body that is refused is refused again."""
    if not answer.startswith(b"{"):
        return "again"
    if status == 200:
        return "again" if NOT_KNOWN.search(answer) else "taken"
    return "refused" if 400 <= status < 500 and status not in (401, 403, 408, 429) else "again"


def to_digest(folder):
    """What is installed, as this process loaded it: its own files and their configuration."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in OWN_FILES:
            digest.update(f"{file.name}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"


def read_configuration(folder):
    try:
        read = json.loads((folder / "fabric.json").read_text())
        configuration = {**DEFAULTS, **read}
        named = all(isinstance(configuration.get(key), str) for key in ("gate_url", "token_file"))
        if not named or not configuration["deadline_ms"] > 0:
            return None, "fabric.json names no gate_url, token_file or usable deadline_ms"
        return configuration, None
    except Exception as error:
        return None, f"fabric.json cannot be read ({type(error).__name__})"


class Gate:
    """The way to the gate for the plugin in `folder`. Making one never raises: a plugin that fails to load guards nothing."""

    def __init__(self, runtime, version, folder):
        self.runtime = runtime
        self.version = version
        folder = Path(folder)
        self.configuration, self.problem = read_configuration(folder)
        try:
            self.files = to_digest(folder)
        except Exception:
            self.files = "unknown"  # The heartbeat then says so.
        self.instance = f"{runtime}-{os.getpid()}-{secrets.token_hex(6)}"
        self.lost = 0
        self._reports = queue.Queue(maxsize=512)
        self._reporter = None
        self._lock = threading.Lock()
        self._results = threading.Event()
        self._results.set()
        self._results_lock = threading.Lock()

    def plugin(self):
        """What proves that these hooks are loaded here."""
        configuration = (self.configuration or {}).get("configuration_hash", "unknown")
        told = {"version": self.version, "configuration": configuration, "files": self.files, "lost": self.lost}
        return told if self.problem is None else {**told, "problem": self.problem}

    def ask(self, payload, stop=None):
        """Returns one of allow, modify, deny, ask. Never raises. In time, but for an open ticket: the same call is asked again
        until a person decided, `stop` (an Event) is set, or the configured wait is over. What comes back then is the ticket."""
        answer = self._ask_in_time(payload)
        try:
            settings = self.configuration or DEFAULTS
            until = time.monotonic() + settings["approval_wait_ms"] / 1000
            stop = stop or threading.Event()
            while answer["decision"] == "ask" and (left := until - time.monotonic()) > 0:
                if stop.wait(min(left, settings["approval_poll_ms"] / 1000)):
                    break
                again = self._ask_in_time(payload)
                # A gate that is away decides nothing: the ticket stays open.
                if not again.get("is_own"):
                    answer = again
        except Exception:
            return refusal("GATE_UNREACHABLE", "the approval could not be waited for")
        return answer

    def _ask_in_time(self, payload):
        limit_ms = (self.configuration or DEFAULTS)["deadline_ms"]
        answers = queue.Queue(maxsize=1)

        def work():
            answers.put(self._ask_once(payload, limit_ms))

        try:
            # A thread of its own: a socket's time limit starts anew with each byte.
            threading.Thread(target=work, daemon=True).start()
            return answers.get(timeout=limit_ms / 1000)
        except queue.Empty:
            return refusal("GATE_UNREACHABLE", f"the policy gate did not answer in {limit_ms} ms")
        except Exception:
            return refusal("GATE_UNREACHABLE", "the policy gate could not be asked")

    def tell_result(self, payload):
        """Reports what a call came to, while the client goes on: the next call is not asked for before it was told."""
        told = threading.Event()
        with self._results_lock:
            self.tell(payload, done=told)
            if not told.is_set():  # Reports go in order: the one told last is the one to wait for.
                self._results = told

    def tell(self, payload, wait=False, done=None):
        """Reports what happened, in order. With `wait` until it is reported or in the spool, at most its deadline."""
        done = done or threading.Event()
        if self.configuration is None:
            done.set()
            return
        try:
            self._start_reporter()
            self._reports.put_nowait((json.dumps(payload, default=repr), done))
            if wait:
                done.wait(self.configuration["observe_deadline_ms"] / 1000)
        except queue.Full:
            self._keep(json.dumps(payload, default=repr))
            done.set()
        except Exception:
            self.lost += 1
            done.set()

    def flush(self, limit_s=5.0):
        """Waits until what was told is reported or in the spool: the process is about to end."""
        done = threading.Event()
        try:
            self._start_reporter()
            self._reports.put((None, done), timeout=limit_s)
            done.wait(limit_s)
        except Exception:
            self.lost += 1

    def _start_reporter(self):
        with self._lock:
            if self._reporter is None or not self._reporter.is_alive():
                self._reporter = threading.Thread(target=self._report, daemon=True)
                self._reporter.start()

    def _report(self):
        while True:
            text, done = self._reports.get()
            try:
                if text is not None:
                    self._deliver(text)
            finally:
                done.set()

    def _deliver(self, text):
        try:
            fate = fate_of(*self._post(text, self.configuration["observe_deadline_ms"]))
            if fate == "again":
                self._keep(text)
            elif fate == "refused":
                self.lost += 1
        except Exception:
            self._keep(text)

    def _ask_once(self, payload, limit_ms):
        if self.configuration is None:
            return refusal("HOOK_MISCONFIGURED", self.problem)
        try:
            # What came back from earlier calls may bear on this one: it is told before this is asked, or nothing is.
            if not self._results.wait(limit_ms / 1000):
                return refusal("GATE_UNREACHABLE", "results of earlier calls could not be reported")
            if self._has_spooled() and not self._drain():
                return refusal("GATE_UNREACHABLE", "results of earlier calls could not be reported")
            # No `default`: an argument that is no JSON would be judged as another text.
            status, body = self._post(json.dumps(payload, allow_nan=False), limit_ms)
            return to_answer(json.loads(body) if status == 200 else None)
        except (TypeError, ValueError):
            return refusal("GATE_UNREACHABLE", "the call or the answer is no JSON")
        except Exception:
            return refusal("GATE_UNREACHABLE", "the policy gate did not answer")

    def _post(self, text, limit_ms):
        url = urllib.parse.urlsplit(self.configuration["gate_url"])
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        # Read each time: tokens end and are renewed.
        token = Path(self.configuration["token_file"]).read_text().strip()
        headers = {
            "authorization": f"Bearer {token}",
            "content-type": "application/json",
            "x-fabric-hooks": str(self.configuration.get("configuration_hash", self.files)),
        }
        connection = kind(url.hostname, url.port, timeout=limit_ms / 1000)
        try:
            connection.request("POST", f"/v1/hooks/{self.runtime}", text.encode(), headers)
            response = connection.getresponse()
            body = response.read(ANSWER_MAX_BYTES + 1)
            # A read with a limit does not say that the answer was cut off, or goes on.
            if response.length or len(body) > ANSWER_MAX_BYTES:
                body = b""
            # The gate names what it sends: a page that happens to read like an answer is none.
            is_json = JSON_TYPE.match(response.getheader("content-type") or "")
            return response.status, body if is_json else b""
        finally:
            connection.close()

    def _spool(self):
        named = self.configuration.get("spool_file")
        return None if named is None else Path(named)

    def _spooled_bytes(self):
        try:
            spool = self._spool()
            return 0 if spool is None else spool.stat().st_size
        except OSError:
            return 0

    def _left_behind(self):
        """Files of processes that ended while they delivered."""
        try:
            spool, now = self._spool(), time.time()
            found = spool.parent.glob(f"{spool.name}.*")
            return [one for one in found if now - one.stat().st_mtime > LEFT_BEHIND_S]
        except (OSError, AttributeError):
            return []

    def _has_spooled(self):
        return self._spooled_bytes() > 0 or len(self._left_behind()) > 0

    def _keep(self, text):
        try:
            spool = self._spool()
            line = text.encode() + b"\n"
            if spool is None or self._spooled_bytes() + len(line) > self.configuration["spool_max_bytes"]:
                self.lost += 1
                return
            spool.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(spool, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except Exception:
            self.lost += 1

    def _drain(self):
        """Sends what the spool holds, and what others left; False: some of it is still there."""
        with self._lock:
            files = [*self._left_behind(), self._spool()]
            return all([self._drain_file(path, at) for at, path in enumerate(files)])

    def _drain_file(self, path, at):
        spool = self._spool()
        # Renamed first, so that two processes do not send the same.
        taken = spool.with_name(f"{spool.name}.{self.instance}.{at}")
        try:
            path.rename(taken)
        except FileNotFoundError:
            return True  # Another process has it.
        os.utime(taken)  # Its age is how long this process is silent.
        lines = [line for line in taken.read_text().split("\n") if line != ""]
        sent = 0
        try:
            for line in lines:
                fate = fate_of(*self._post(line, self.configuration["observe_deadline_ms"]))
                if fate == "again":
                    break
                self.lost += 1 if fate == "refused" else 0
                sent += 1
        except Exception:
            pass  # The rest goes back.
        for line in lines[sent:]:
            self._keep(line)
        taken.unlink(missing_ok=True)
        return sent == len(lines)
