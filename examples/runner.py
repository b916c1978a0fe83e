#!/usr/bin/env python3
"""A runner in Python's standard library, from Python 3.9 on. Put your jobs into JOBS, then either or both of

    RUNNER_TOKEN=… PORT=8500 python3 runner.py                              # mode = "push"
    RUNNER_TOKEN=… GATEWAY_URL=https://gateway.example python3 runner.py    # mode = "lease"

RESULTS names a file that keeps results over a restart. SIGTERM and SIGINT: the running calls are finished, then it ends.
"""
import base64
import contextlib
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import re
import signal
import socket
import sqlite3
import sys
import threading
import time
import urllib.parse
from dataclasses import dataclass


class RetryLater(Exception):
    """Raised by a job: the call is delivered again, after `after_secs` at the earliest."""

    def __init__(self, words="try again later", after_secs=0):
        super().__init__(words)
        self.after_secs = min(max(int(after_secs), 0), 86_400)


class Refuse(Exception):
    """Raised by a job: no other try would help. The call becomes a dead letter."""


@dataclass(frozen=True)
class Call:
    key: str  # the idempotency key
    call_id: int
    attempt: int
    service_id: int
    job_index: int
    caller: "str | None"
    content_type: "str | None"
    body: bytes
    metadata: dict


def count_words(call):
    """A job: takes a Call, returns text, bytes, (content type, bytes) or None. Any other exception than Refuse is a reason to try again."""
    return f"{len(call.body.split())} words"


JOBS = {(1, 0): count_words, (2, 0): count_words}  # by service and job

TOKEN = os.environ.get("RUNNER_TOKEN", "")
CONCURRENCY = 16
LEASE_SECS, WAIT_SECS = 60, 20  # how long a call is ours until it is extended; how long the gateway may wait for one
TOLERANCE_SECS = 300  # between the gateway's clock and ours
MAX_BODY_BYTES = 64 * 2**20
KEEP_SECS = 30 * 86_400  # how long results are known
GRACE_SECS = 30  # how long a stopping runner tries to report what it has finished

SIGNED_NAME = re.compile(r"x-(x402|net)-[\w-]+", re.ASCII)
KEY_FORM = re.compile("0x[0-9a-f]{64}")


def verify(token, headers, body, now):
    """The signed headers of a pushed call. Raises ValueError with the reason where it was not signed with the token, or not now.
    `headers` has names in lower case, and a list where a header came twice. No other header is signed."""
    key, timestamp = headers.get("webhook-id"), headers.get("webhook-timestamp")
    given = [headers.get(name) for name in ("webhook-signature", "x-net-metadata-signature")]
    metadata = {name: value for name, value in headers.items() if SIGNED_NAME.fullmatch(name)}
    metadata.pop("x-net-metadata-signature", None)
    if not all(isinstance(value, str) for value in (key, timestamp, *given, *metadata.values())):
        raise ValueError("malformed_headers")
    if not KEY_FORM.fullmatch(key) or not re.fullmatch("0|[1-9][0-9]{0,11}", timestamp):
        raise ValueError("malformed_headers")
    if abs(now - int(timestamp)) > TOLERANCE_SECS:
        raise ValueError("timestamp_out_of_range")
    message = f"{key}.{timestamp}.".encode()
    if not signs(token, message + body, given[0]):
        raise ValueError("body_signature_mismatch")
    listed = json.dumps(metadata, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if not signs(token, b"metadata." + message + listed.encode(), given[1]):
        raise ValueError("metadata_signature_mismatch")
    return metadata


def signs(token, message, signatures):
    """Whether one of the listed signatures is that of the message. In constant time."""
    mac = hmac.new(token.encode(), message, hashlib.sha256).digest()
    wanted = b"v1," + base64.b64encode(mac)
    return any([hmac.compare_digest(wanted, one.encode()) for one in signatures.split(" ")])


def read_call(metadata, content_type, body):
    """A Call from the headers of a push or the metadata of a lease. Raises Refuse for one that no job of JOBS takes."""
    try:
        numbers = [int(metadata[f"x-net-{name}"]) for name in ("call-id", "attempt", "service-id", "job-index")]
        key, origin = metadata["x-net-idempotency-key"], metadata["x-net-trigger"]
    except (KeyError, ValueError) as error:
        raise Refuse(f"call_malformed: {error}") from None
    call = Call(key, *numbers, metadata.get("x-net-caller"), content_type, body, metadata)
    if not KEY_FORM.fullmatch(key):
        raise Refuse("call_malformed: the idempotency key")
    if (call.service_id, call.job_index) not in JOBS:
        raise Refuse(f"job_unknown: this runner has no job {call.service_id}/{call.job_index}")
    if origin != "x402":
        raise Refuse(f"trigger_not_wired: only calls by x402 run here, not by {origin}")
    return call


class Results:
    """What the jobs returned, by idempotency key: a call that is delivered again is not run again."""

    def __init__(self, file):
        self.db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self.db.execute("create table if not exists result (key text primary key, type text, body blob, at real)")
        self.guard, self.running = threading.Lock(), {}

    def once(self, call):
        """The result of the call: (content type, bytes), or None. A second delivery meanwhile waits for the first."""
        with self.guard:
            turn = self.running.setdefault(call.key, [threading.Lock(), 0])
            turn[1] += 1
        try:
            with turn[0]:
                with self.guard:
                    known = self.db.execute("select type, body from result where key = ?", [call.key]).fetchone()
                if known is None:
                    known = encode(JOBS[call.service_id, call.job_index](call))
                    with self.guard:
                        now = time.time()
                        self.db.execute("delete from result where at < ?", [now - KEEP_SECS])
                        self.db.execute("insert or ignore into result values (?, ?, ?, ?)", [call.key, *known, now])
                return known
        finally:
            with self.guard:
                turn[1] -= 1
                if turn[1] == 0:
                    del self.running[call.key]


def encode(returned):
    """As (content type, bytes); (None, None) for nothing."""
    if returned is None:
        return None, None
    if isinstance(returned, str):
        return "text/plain; charset=utf-8", returned.encode()
    return returned if isinstance(returned, tuple) else ("application/octet-stream", bytes(returned))


results, slots, stopping = Results(os.environ.get("RESULTS", ":memory:")), threading.Semaphore(CONCURRENCY), threading.Event()


def say(text):
    print(text, file=sys.stderr, flush=True)


class Push(http.server.BaseHTTPRequestHandler):
    """Takes pushed calls. Speaks HTTP/1.0: each call has its own connection, so none is left open when the runner stops."""

    timeout = 30

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,12}", length) or int(length) > MAX_BODY_BYTES:
            return self.answer(413, b"a content-length of at most %d is needed" % MAX_BODY_BYTES)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return None  # the gateway has hung up, and delivers again
        try:
            metadata = verify(TOKEN, self.received(), body, time.time())
        except ValueError as reason:
            say(f"a call was not signed by the gateway: {reason}")
            return self.answer(401, str(reason).encode())
        if stopping.is_set() or not slots.acquire(blocking=False):
            return self.answer(503, b"the runner is busy, or stops", {"retry-after": "1"})
        try:
            self.run(metadata, body)
        finally:
            slots.release()

    def run(self, metadata, body):
        call_id = metadata.get("x-net-call-id")
        try:
            call = read_call(metadata, self.headers.get("content-type"), body)
            if call.key != self.headers["webhook-id"]:
                raise Refuse("call_malformed: the id is not the idempotency key")
            content_type, result = results.once(call)
            say(f"call {call_id}: completed")
            headers = {} if content_type is None else {"content-type": content_type}
            return self.answer(204 if result is None else 200, result or b"", headers)
        except Refuse as refusal:
            status, words, headers = 422, str(refusal), {}
        except RetryLater as later:
            status, words, headers = 429, str(later), {"retry-after": str(later.after_secs)}
        except Exception as error:
            status, words, headers = 500, repr(error), {}
        say(f"call {call_id}: {words!r}")
        self.answer(status, words.encode(errors="replace"), headers)

    def received(self):
        headers = {}
        for name, value in self.headers.items():
            before = headers.get(name.lower())
            headers[name.lower()] = value if before is None else [before, value]
        return headers

    def answer(self, status, body, headers=()):
        with contextlib.suppress(OSError):  # the gateway has hung up: it delivers again
            self.send_response(status)
            for name, value in {"content-type": "text/plain; charset=utf-8", **dict(headers)}.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class PushServer(http.server.ThreadingHTTPServer):
    daemon_threads = False  # server_close() waits for the calls that run
    request_queue_size = 128


class Gateway:
    """The lease API. `post` answers (status, the answer's JSON); the status is 0 where there was no answer."""

    def __init__(self, url):
        self.url = urllib.parse.urlsplit(url)
        self.polling = None

    def post(self, path, body, timeout, is_poll=False):
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.url.hostname, self.url.port, timeout=timeout)
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        try:
            connection.connect()
            if is_poll:
                self.polling = connection.sock
                if stopping.is_set():
                    return 0, {}
            connection.request("POST", self.url.path.rstrip("/") + path, json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 200:
                return 200, json.loads(text)
            wait = answer.headers.get("retry-after", "")
            return answer.status, {"words": text[:300], "wait_secs": min(int(wait), 60) if wait.isdecimal() else 0}
        except (OSError, http.client.HTTPException, ValueError) as error:
            return 0, {"words": repr(error)}
        finally:
            self.polling = None
            connection.close()

    def hang_up(self):
        """Ends the request that waits for calls: calls that the gateway was about to lease to it return immediately."""
        if self.polling is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self.polling, socket.SHUT_RDWR)

    def report(self, path, body, is_over):
        """Posts until the gateway answers: the status; 0 where it did not before `is_over`."""
        failures = 0
        while True:
            status, answer = self.post(path, body, 10)
            if status in FINAL or status == 200 or is_over():
                return status
            failures += 1
            pause(failures, 5, answer, threading.Event())


FINAL = (400, 401, 403, 409, 413, 422)  # any other status may pass: 429, 503, or a proxy's 404 while a gateway is replaced


def pause(failures, longest_secs, answer, until):
    """After a failure: 0.2, 0.4, 0.8 … seconds, half of it random; longer where the gateway says so."""
    back_off = min(longest_secs, 0.1 * 2 ** min(failures, 20)) * random.uniform(0.5, 1)
    until.wait(max(back_off, answer.get("wait_secs", 0)))


def lease_calls(gateway):
    """Leases calls and runs each in a thread, until the runner stops. Returns when all have ended."""
    threads, failures = set(), 0
    while not stopping.is_set():
        if not slots.acquire(timeout=0.5):
            continue
        free = 1
        while free < 10 and slots.acquire(blocking=False):
            free += 1
        body = {"max": free, "lease_secs": LEASE_SECS, "wait_secs": WAIT_SECS}
        status, answer = gateway.post("/runner/leases", body, WAIT_SECS + 10, is_poll=True)
        calls = answer.get("calls", [])
        for leased in calls:
            thread = threading.Thread(target=serve_leased, args=(gateway, leased))
            threads = {one for one in threads if one.is_alive()} | {thread}
            thread.start()
        for _ in range(free - len(calls)):
            slots.release()
        if status in FINAL:
            say(f"the gateway refuses this runner: {status} {answer['words']!r}")
            stopping.set()
        elif status != 200 and not stopping.is_set():
            failures += 1
            say(f"the gateway gave no calls: {status} {answer['words']!r}")
            pause(failures, 30, answer, stopping)
        else:
            failures = 0
    for thread in threads:
        thread.join()
    return 1 if status in FINAL else 0


def serve_leased(gateway, leased):
    """Runs one leased call, extends its lease meanwhile, and reports what came of it."""
    call_id, lease = leased["call_id"], {"lease_id": leased["lease_id"]}
    path, done, lost = f"/runner/calls/{call_id}", threading.Event(), threading.Event()

    def keep():
        wait_secs = LEASE_SECS / 3
        while not done.wait(wait_secs):
            status, _ = gateway.post(f"{path}/extend", {**lease, "lease_secs": LEASE_SECS}, 10)
            if status in FINAL:
                return lost.set()
            wait_secs = LEASE_SECS / 3 if status == 200 else min(LEASE_SECS / 6, 5)

    threading.Thread(target=keep).start()
    try:
        end, body = outcome(leased)
        ended_at = time.monotonic()
        def is_over():
            return lost.is_set() or (stopping.is_set() and time.monotonic() - ended_at > GRACE_SECS)
        status = gateway.report(f"{path}/{end}", {**lease, **body}, is_over)
        if end == "complete" and status in (400, 413, 422):  # the work is done, and would have the same result again
            end, body = "fail", {"error": f"the gateway refused the result: {status}", "retry": False}
            status = gateway.report(f"{path}/fail", {**lease, **body}, is_over)
        words = {200: f"{end} {body.get('error', '')!r}", 409: "another lease has it now"}
        say(f"call {call_id}: {words.get(status, f'not reported: {status}')}")
    finally:
        done.set()
        slots.release()


def outcome(leased):
    """What to report of a leased call: the last part of the path, and the body without the lease."""
    try:
        body = base64.b64decode(leased["body_base64"])
        # the names of a lease are in capitals
        metadata = {name.lower(): value for name, value in leased["metadata"].items()}
        content_type, result = results.once(read_call(metadata, leased["content_type"], body))
        if result is None:
            return "complete", {}
        text = base64.b64encode(result).decode()
        return "complete", {"result": {"content_type": content_type, "body_base64": text}}
    except Refuse as refusal:
        return "fail", {"error": str(refusal)[:500], "retry": False}
    except RetryLater as later:
        return "fail", {"error": str(later)[:500], "retry": True, "retry_after_secs": later.after_secs}
    except Exception as error:
        return "fail", {"error": repr(error)[:500], "retry": True}


def main():
    port, gateway_url = os.environ.get("PORT"), os.environ.get("GATEWAY_URL")
    if TOKEN == "" or not (port or gateway_url):
        sys.exit("RUNNER_TOKEN and one of PORT and GATEWAY_URL must be set")
    if gateway_url and not (re.match("https?://[^/]", gateway_url) and re.fullmatch("[!-~]+", TOKEN)):
        sys.exit("GATEWAY_URL must be an http(s) URL, and RUNNER_TOKEN what a header may have")
    gateway, stopped_at = Gateway(gateway_url) if gateway_url else None, []

    def stop(number, _):
        # a second one ends the runner immediately; one that comes with the first, as from `timeout`, is the same
        stopped_at.append(time.monotonic())
        if stopped_at[-1] - stopped_at[0] > 1:
            os._exit(128 + number)
        stopping.set()
        if gateway:
            gateway.hang_up()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    server = PushServer((os.environ.get("HOST", "127.0.0.1"), int(port)), Push) if port else None
    if server:
        threading.Thread(target=server.serve_forever).start()
        say(f"listening on port {server.server_port}")
    if gateway:
        say(f"leasing calls from {gateway_url}")
    code = lease_calls(gateway) if gateway else 0
    stopping.wait()
    if server:
        server.shutdown()
        server.server_close()
    say("stopped: every call has ended")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # until here a second signal was handled
    sys.exit(code)


if __name__ == "__main__":
    main()
