#!/usr/bin/env python3
"""Verifies a Tollbook export with Python's standard library alone.

    verify.py EXPORT --checkpoint OLD --checkpoint NEW --pubkey KEY

Written from the formats, not from Tollbook's code: RFC 6962, RFC 8032, C2SP signed-note and tlog-checkpoint. It knows
no quote digests, since Python has no keccak.
"""
import argparse
import base64
import hashlib
import json
import re
import sys

# --- Ed25519, RFC 8032 section 5.1, in extended coordinates -----------------------------------------------------------
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def recover_x(y, sign):
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if x2 == 0:
        return None if sign else 0
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * SQRT_M1 % P
    if (x * x - x2) % P:
        return None
    return P - x if x & 1 != sign else x


def decompress(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = recover_x(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def ed25519_verify(public, message, signature):
    if len(public) != 32 or len(signature) != 64:
        return False
    a, r = decompress(public), decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = multiply(s, BASE), add(r, multiply(k, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# --- Checkpoints ------------------------------------------------------------------------------------------------------
class Wrong(Exception):
    pass


def parse_key(text):
    name, key_id, data = text.strip().split("+", 2)
    raw = base64.b64decode(data, validate=True)
    if len(raw) != 33 or raw[0] != 1:
        raise Wrong("the public key is not Ed25519")
    if hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4].hex() != key_id:
        raise Wrong("the public key's hash is not that of its name and key")
    return name, bytes.fromhex(key_id), raw[1:]


def open_checkpoint(note, key):
    name, key_id, public = key
    text, separator, signatures = note.rpartition("\n\n")
    if not separator:
        raise Wrong("this is not a signed note")
    text += "\n"
    lines = text.split("\n")[:-1]
    if len(lines) < 3 or not re.fullmatch(r"0|[1-9][0-9]*", lines[1]):
        raise Wrong("this is not a checkpoint")
    if lines[0] != name:
        raise Wrong(f"the checkpoint is of the log {lines[0]}, not of {name}")
    for line in signatures.strip("\n").split("\n"):
        match = re.fullmatch("— (\\S+) (\\S+)", line)
        raw = base64.b64decode(match[2]) if match else b""
        if match and match[1] == name and raw[:4] == key_id:
            if ed25519_verify(public, text.encode(), raw[4:]):
                return int(lines[1]), base64.b64decode(lines[2], validate=True)
            raise Wrong("the checkpoint's signature does not hold")
    raise Wrong("the checkpoint is signed by another key")


# --- The tree ---------------------------------------------------------------------------------------------------------
class Tree:
    def __init__(self):
        self.size, self.stack = 0, []

    def append(self, leaf):
        node, size = hashlib.sha256(b"\0" + leaf).digest(), self.size
        while size & 1:
            node = hashlib.sha256(b"\1" + self.stack.pop() + node).digest()
            size >>= 1
        self.stack.append(node)
        self.size += 1

    def root(self):
        if not self.stack:
            return hashlib.sha256(b"").digest()
        node = self.stack[-1]
        for left in reversed(self.stack[:-1]):
            node = hashlib.sha256(b"\1" + left + node).digest()
        return node


# --- The ledger -------------------------------------------------------------------------------------------------------
UNPAID = {"settling", "settlement_unknown", "settlement_failed"}
PAYMENT_MOVES = {
    "payer_mismatch": (UNPAID, None),
    "settlement_unknown": (UNPAID, "settlement_unknown"),
    "settlement_failed": (UNPAID, "settlement_failed"),
    "payment_settled": (UNPAID, "settled"),
    "settlement_confirmed": ({"settled"}, None),
    "settlement_disproved": ({"settled"}, "settlement_unknown"),
    "settlement_reorged": ({"settled"}, "settling"),
    "settlement_overdue": ({"settling", "settlement_unknown"}, None),
    "operator_settlement_resolved": ({"settling", "settlement_unknown"}, None),
}
CALL_MOVES = {
    "delivered": ({"enqueued", "delivered"}, "delivered"),
    "delivery_failed": ({"enqueued", "delivered"}, None),
    "completed": ({"enqueued", "delivered"}, "completed"),
    "dead_lettered": ({"enqueued", "delivered"}, "dead_lettered"),
    "operator_requeued": ({"dead_lettered"}, "enqueued"),
}
FIELDS = ["at", "data", "lane", "schema", "seq", "stream", "type", "version"]


class Ledger:
    def __init__(self):
        self.seq, self.at, self.counts = 0, "", {}
        self.versions, self.quotes, self.payments, self.transfers = {}, set(), {}, {}
        self.claimed, self.nonces, self.pending_nonce = set(), {}, {}
        self.top_ups = {}

    def next(self, raw):
        self.seq += 1
        try:
            event = json.loads(raw)
            canonical = json.dumps(event, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode()
        except ValueError:
            raise Wrong("this is not JSON")
        if not isinstance(event, dict) or list(event) != FIELDS or canonical != raw:
            raise Wrong("this is not an event in canonical JSON")
        if event["seq"] != self.seq:
            raise Wrong(f"event {event['seq']} stands where {self.seq} should")
        stream, kind = event["stream"], event["type"]
        version = self.versions.get(stream, 0) + 1
        if event["version"] != version:
            raise Wrong(f"{kind} is version {event['version']} of its stream, not {version}")
        if event["at"] < self.at:
            raise Wrong(f"{kind} is older than the event before it")
        self.versions[stream], self.at = version, event["at"]
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.apply(stream, kind, event["data"], version)

    def apply(self, stream, kind, data, version):
        mine = self.payments.setdefault(stream, {}) if stream in self.quotes else {}
        if kind == "quote_issued":
            if version != 1:
                raise Wrong("a quote that is not the first of its stream")
            self.quotes.add(stream)
            self.pending_nonce[stream] = None
            self.jobs = getattr(self, "jobs", {})
            self.jobs[stream] = (data["service_id"], data["job_index"])
        elif kind == "auth_passed" and "caller_nonce" in data:
            self.pending_nonce[stream] = (data["caller"], self.jobs[stream], data["caller_nonce"])
        elif kind == "payment_verified":
            self.pending_nonce[stream] = None
        elif kind == "settlement_started":
            self.start(stream, mine, data["payment"])
        elif kind in PAYMENT_MOVES:
            self.move_payment(stream, kind, data, mine)
        elif kind == "enqueued":
            waiting = [p for p in mine.values() if p["status"] == "settled" and p["call"] is None and p["nonce"] == data["payment_nonce"]]
            if not waiting:
                raise Wrong("enqueued, but no settled payment of that nonce waits for its call")
            waiting[0].update(call="enqueued", call_id=data["call_id"])
        elif kind in CALL_MOVES:
            before, after = CALL_MOVES[kind]
            found = [p for p in mine.values() if p["call"] is not None and p["call_id"] == data["call_id"]]
            if not found or found[0]["call"] not in before:
                raise Wrong(f"{kind} of a call that is {found[0]['call'] if found else 'not there'}")
            found[0]["call"] = after or found[0]["call"]

        elif kind == "credit_topped_up":
            self.top_up(data)
        elif kind == "credit_taken_back":
            if self.top_ups.get(data["call_id"]) != (data["account_id"], int(data["amount_micros"]) + int(data["missing_micros"])):
                raise Wrong("credit is taken back that was not bought so")
            self.top_ups[data["call_id"]] = None

    def top_up(self, data):
        payer = (data["network"], data["asset"], data["payer"])
        paid = [p for name, p in self.payments.get(data["quote_digest"], {}).items() if name[:3] == payer]
        if not any(p["call"] is not None and p["call_id"] == data["call_id"] and p["amount"] == data["atoms"] for p in paid):
            raise Wrong("credit was bought, but nobody has paid for that call")
        if data["call_id"] in self.top_ups:
            raise Wrong("this call has bought credit before")
        self.top_ups[data["call_id"]] = (data["account_id"], int(data["amount_micros"]))

    def start(self, stream, mine, payment):
        if stream not in self.quotes or any(p["status"] != "settlement_failed" for p in mine.values()):
            raise Wrong("a payment was started where none may be")
        name = (payment["network"], payment["asset"], payment["payer"], payment["nonce"])
        if name in self.claimed:
            raise Wrong("this payment was claimed before")
        self.claimed.add(name)
        nonce = self.pending_nonce[stream]
        if nonce is not None:
            if nonce in self.nonces:
                raise Wrong("the caller's nonce was claimed before")
            self.nonces[nonce] = stream
        mine[name] = {"status": "settling", "amount": payment["amount"], "nonce": payment["nonce"], "call": None, "call_id": None}

    def move_payment(self, stream, kind, data, mine):
        before, after = PAYMENT_MOVES[kind]
        payment = mine.get((data["network"], data["asset"], data["payer"], data["payment_nonce"]))
        if payment is None:
            raise Wrong(f"{kind} names a payment that was never started")
        if payment["status"] not in before:
            raise Wrong(f"{kind} of a payment that is {payment['status']}")
        if kind == "payment_settled" and data["amount"] != payment["amount"]:
            raise Wrong("the amount that was settled is not the one that was signed")
        payment["status"] = after or payment["status"]
        if data.get("call") == "withdrawn":
            payment["call"] = None
        if kind == "settlement_failed" and self.nonces.get(self.pending_nonce[stream]) == stream:
            del self.nonces[self.pending_nonce[stream]]
        if kind in ("payment_settled", "settlement_confirmed") and "log_index" in data:
            transfer = (data["network"], data["transaction"], data["log_index"])
            if transfer in self.transfers:
                raise Wrong("this transfer has paid before")
            self.transfers[transfer] = stream
        if kind == "settlement_reorged":
            for transfer in [t for t, s in self.transfers.items() if s == stream and t[:2] == (data["network"], data["transaction"])]:
                del self.transfers[transfer]

    def compare(self, trailer):
        if trailer["seq"] != self.seq:
            raise Wrong(f"the ledger says {trailer['seq']} events, and there are {self.seq}")
        for kind in sorted(set(trailer["counters"]) | set(self.counts)):
            if trailer["counters"].get(kind, 0) != self.counts.get(kind, 0):
                raise Wrong(f"the counter of {kind} is not the number of such events")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("export")
    parser.add_argument("--checkpoint", action="append", default=[])
    parser.add_argument("--pubkey", required=True)
    args = parser.parse_args()
    key_text = args.pubkey if args.pubkey.count("+") >= 2 else open(args.pubkey).read()
    faults, heads = [], []
    try:
        key = parse_key(key_text)
        for path in args.checkpoint:
            heads.append((*open_checkpoint(open(path, encoding="utf-8", newline="").read(), key), path))
    except (Wrong, ValueError) as wrong:
        print(f"WRONG {wrong}")
        return 1
    heads.sort()
    tree, ledger, first = Tree(), Ledger(), None
    with open(args.export, "rb") as export:
        for line in export:
            is_leaf = not line.startswith(b'{"counters":')
            try:
                if first is None and not line.endswith(b"\n"):
                    raise Wrong("the export ends in the middle of a line")
                if first is None:
                    ledger.next(line[:-1]) if is_leaf else ledger.compare(json.loads(line))
            except (Wrong, KeyError, TypeError, ValueError) as wrong:
                first = f"first at event {ledger.seq}: {wrong}"
            if is_leaf:
                tree.append(line.rstrip(b"\n"))
                while heads and heads[0][0] == tree.size:
                    size, root, path = heads.pop(0)
                    if root != tree.root():
                        faults.append(f"{path}: the first {size} events are not those that were sealed")
    faults += [f"{path}: it covers {size} events, and there are {tree.size}" for size, _, path in heads if size > 0]
    for fault in ([first] if first else []) + faults:
        print(f"WRONG {fault}")
    print(f"{tree.size} events, root {base64.b64encode(tree.root()).decode()}")
    return 1 if first or faults else 0


if __name__ == "__main__":
    sys.exit(main())
