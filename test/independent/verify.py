#!/usr/bin/env python3
"""Verifies a Tollbook export with Python's standard library alone.

    verify.py EXPORT --checkpoint OLD --checkpoint NEW --pubkey KEY

Written from the formats, not from Tollbook's code: RFC 6962, RFC 8032, EIP-712, EIP-3009, C2SP signed-note and tlog-checkpoint. What
it does not look at: the schemas of the events' data, beyond the fields it uses.
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


# --- Keccak-256 and the digest of a quote, EIP-712 ----------------------------------------------------------------------
MASK = 2**64 - 1
ROTATIONS = [[0, 36, 3, 41, 18], [1, 44, 10, 45, 2], [62, 6, 43, 15, 61], [28, 55, 25, 21, 56], [27, 20, 39, 8, 14]]


def round_constants():
    register, constants = 1, []
    for _ in range(24):
        constant = 0
        for j in range(7):
            constant |= (register & 1) << (2**j - 1)
            register = register << 1 ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


ROUND_CONSTANTS = round_constants()


def rotate(word, by):
    return (word << by | word >> (64 - by)) & MASK


def keccak_f(a):
    for constant in ROUND_CONSTANTS:
        c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(5)]
        d = [c[x - 1] ^ rotate(c[(x + 1) % 5], 1) for x in range(5)]
        b = [[0] * 5 for _ in range(5)]
        for x in range(5):
            for y in range(5):
                b[y][(2 * x + 3 * y) % 5] = rotate(a[x][y] ^ d[x], ROTATIONS[x][y])
        a = [[b[x][y] ^ (~b[(x + 1) % 5][y] & b[(x + 2) % 5][y]) for y in range(5)] for x in range(5)]
        a[0][0] ^= constant
    return a


def keccak256(data):
    rate, a = 136, [[0] * 5 for _ in range(5)]
    padded = bytearray(data + b"\1" + bytes(-(len(data) + 1) % rate))
    padded[-1] |= 0x80
    for at in range(0, len(padded), rate):
        for i in range(rate // 8):
            a[i % 5][i // 5] ^= int.from_bytes(padded[at + 8 * i : at + 8 * i + 8], "little")
        a = keccak_f(a)
    return b"".join(a[i % 5][i // 5].to_bytes(8, "little") for i in range(4))


QUOTE_TYPE = keccak256(
    b"JobQuote(uint64 serviceId,uint32 jobIndex,uint256 priceWei,bytes32 optionsHash,address requester,"
    b"bytes32 inputsHash,uint64 issuedAt,uint64 expiresAt,bytes32 salt)"
)
DOMAIN = keccak256(keccak256(b"EIP712Domain(string name,string version)") + keccak256(b"Tollbook") + keccak256(b"1"))


def canonical(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode()


OPTION_HASHES = {}


def option_hash(option):
    return bytes.fromhex(option[2:]) if isinstance(option, str) else cached_hash(canonical(option))


def cached_hash(data):
    """Nearly all quotes of a job have the same options, and a hash takes a millisecond."""
    if data not in OPTION_HASHES:
        OPTION_HASHES[data] = keccak256(data)
    return OPTION_HASHES[data]


def quote_digest(data):
    hashes = b"".join(option_hash(option) for option in data["options"])
    numbers = [data["service_id"], data["job_index"], int(data["price_wei"])]
    words = [number.to_bytes(32, "big") for number in numbers] + [cached_hash(hashes)]
    words += [bytes.fromhex(data[name][2:]).rjust(32, b"\0") for name in ("requester", "inputs_hash")]
    words += [data[name].to_bytes(32, "big") for name in ("issued_at", "expires_at")] + [bytes.fromhex(data["salt"][2:])]
    return "0x" + keccak256(b"\x19\1" + DOMAIN + keccak256(QUOTE_TYPE + b"".join(words))).hex()


# --- Signatures of payments: secp256k1, EIP-712 with EIP-3009 ------------------------------------------------------------
FIELD = 2**256 - 2**32 - 977
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
GENERATOR = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def curve_add(p, q):
    if p is None or q is None:
        return q if p is None else p
    if p[0] == q[0] and (p[1] + q[1]) % FIELD == 0:
        return None
    if p == q:
        slope = 3 * p[0] * p[0] * pow(2 * p[1], -1, FIELD)
    else:
        slope = (q[1] - p[1]) * pow(q[0] - p[0], -1, FIELD)
    x = (slope * slope - p[0] - q[0]) % FIELD
    return (x, (slope * (p[0] - x) - p[1]) % FIELD)


def curve_sum(a, p, b, q):
    """a times p plus b times q, both at once."""
    both, result = curve_add(p, q), None
    for bit in range(255, -1, -1):
        result = curve_add(result, result)
        chosen = (a >> bit & 1, b >> bit & 1)
        if chosen != (0, 0):
            result = curve_add(result, {(1, 0): p, (0, 1): q, (1, 1): both}[chosen])
    return result


def signer_of(digest, signature):
    """The account that signed a digest; None where no key fits."""
    if len(signature) != 65:
        return None
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:64]))
    v = signature[64] - 27 if signature[64] >= 27 else signature[64]
    if not (0 < r < ORDER and 0 < s <= ORDER // 2 and v in (0, 1)):
        return None
    y = pow((pow(r, 3, FIELD) + 7) % FIELD, (FIELD + 1) // 4, FIELD)
    if (y * y - pow(r, 3, FIELD) - 7) % FIELD:
        return None
    point, inverse = (r, y if y & 1 == v else FIELD - y), pow(r, -1, ORDER)
    key = curve_sum(s * inverse % ORDER, point, -int.from_bytes(digest, "big") * inverse % ORDER, GENERATOR)
    return None if key is None else "0x" + keccak256(key[0].to_bytes(32, "big") + key[1].to_bytes(32, "big"))[12:].hex()


TRANSFER_TYPE = keccak256(
    b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
TOKEN_DOMAIN_TYPE = keccak256(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")


PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
PERMIT2_PROXY = "0x402085c248eea27d92e8b30b2c58ed07f9e20001"
PERMIT2_DOMAIN_TYPE = keccak256(b"EIP712Domain(string name,uint256 chainId,address verifyingContract)")
PERMISSIONS_TYPE = keccak256(b"TokenPermissions(address token,uint256 amount)")
WITNESS_TYPE = keccak256(b"Witness(address to,uint256 validAfter)")
PERMIT_TYPE = keccak256(
    b"PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)"
    b"TokenPermissions(address token,uint256 amount)Witness(address to,uint256 validAfter)"
)
UPTO_PROXY = "0x4020a4f3b7b90cca423b9fabcc0ce57c6c240002"
UPTO_WITNESS_TYPE = keccak256(b"Witness(address to,address facilitator,uint256 validAfter)")
UPTO_PERMIT_TYPE = keccak256(
    b"PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)"
    b"TokenPermissions(address token,uint256 amount)Witness(address to,address facilitator,uint256 validAfter)"
)


def word_of(hexadecimal):
    return bytes.fromhex(hexadecimal[2:]).rjust(32, b"\0")


def number_word(number):
    return int(number).to_bytes(32, "big")


def permit_digest(payment):
    domain = cached_hash(
        PERMIT2_DOMAIN_TYPE + keccak256(b"Permit2") + number_word(payment["network"].split(":")[1]) + word_of(PERMIT2)
    )
    permitted = keccak256(PERMISSIONS_TYPE + word_of(payment["asset"]) + number_word(payment["amount"]))
    is_upto = payment["transfer_method"] == "upto"
    submitter = word_of(payment["submitter"]) if is_upto else b""
    witness_type, permit_type, proxy = (
        (UPTO_WITNESS_TYPE, UPTO_PERMIT_TYPE, UPTO_PROXY) if is_upto else (WITNESS_TYPE, PERMIT_TYPE, PERMIT2_PROXY)
    )
    witness = keccak256(witness_type + word_of(payment["pay_to"]) + submitter + number_word(payment["valid_after"]))
    deadline = number_word(int(payment["valid_before"]) - 1)
    permit = permitted + word_of(proxy) + word_of(payment["nonce"]) + deadline + witness
    return keccak256(b"\x19\1" + domain + keccak256(permit_type + permit))


def authorization_digest(payment):
    if payment["transfer_method"] in ("permit2", "upto"):
        return permit_digest(payment)
    chain = int(payment["network"].split(":")[1]).to_bytes(32, "big")
    name, token_version = (cached_hash(payment[field].encode()) for field in ("eip712_name", "eip712_version"))
    domain = cached_hash(TOKEN_DOMAIN_TYPE + name + token_version + chain + word_of(payment["asset"]))
    numbers = [int(payment[field]).to_bytes(32, "big") for field in ("amount", "valid_after", "valid_before")]
    parties = [word_of(payment[field]) for field in ("payer", "pay_to")]
    return keccak256(b"\x19\1" + domain + keccak256(TRANSFER_TYPE + b"".join(parties + numbers) + word_of(payment["nonce"])))


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
UNPAID = {"authorized", "settling", "settlement_unknown", "settlement_failed"}
BEGUN = {"settled", "settlement_unknown", "settlement_failed"}
PAYMENT_MOVES = {
    "upstream_repeated": ({"authorized"}, None),
    "upstream_answered": ({"authorized"}, "settling"),
    "payer_mismatch": (UNPAID, None),
    "settlement_unknown": (UNPAID, "settlement_unknown"),
    "settlement_failed": (UNPAID, "settlement_failed"),
    "payment_settled": (UNPAID, "settled"),
    "settlement_confirmed": ({"settled"}, None),
    "settlement_disproved": ({"settled"}, "settlement_unknown"),
    "settlement_reorged": ({"settled"}, "settlement_unknown"),
    "refunded": (BEGUN, None),
    "refund_started": ({"settled"}, None),
    "refund_sent": (BEGUN, None),
    "refund_not_sent": (BEGUN, None),
    "refund_abandoned": (BEGUN, None),
    "refund_requested": ({"settled"}, None),
    "refund_request_granted": ({"settled"}, None),
    "refund_request_declined": ({"settled"}, None),
    "settlement_overdue": ({"settling", "settlement_unknown"}, None),
    "operator_settlement_resolved": ({"settling", "settlement_unknown"}, None),
}
CALL_MOVES = {
    "delivered": ({"enqueued", "delivered"}, "delivered"),
    "delivery_failed": ({"enqueued", "delivered"}, None),
    "completed": ({"enqueued", "delivered"}, "completed"),
    "dead_lettered": ({"enqueued", "delivered"}, "dead_lettered"),
    "operator_requeued": ({"dead_lettered"}, "enqueued"),
    # no event of the call can follow
    "operator_discarded": ({"dead_lettered"}, "given_up"),
}
# for each type: the entity of its stream, the steps it may follow, and the step it leads to
COST_TERMS = ("network", "transaction", "purpose", "payer", "symbol", "gas_used", "gas_price_wei", "l1_fee_wei")
STEPS = {
    "chat_admitted": ("chat", {None}, "admitted"),
    "chat_refused": ("chat", {None}, "refused"),
    "credit_held": ("chat", {"admitted"}, None),
    "chat_completed": ("chat", {"admitted", "completed"}, "completed"),
    "chat_failed": ("chat", {"admitted"}, "failed"),
    "credit_captured": ("chat", {"completed"}, None),
    "credit_released": ("chat", {"completed", "failed"}, None),
    "credit_corrected": ("chat", {"completed"}, None),
    "credit_account_opened": ("account", {None}, "opened"),
    "credit_granted": ("account", {"opened"}, None),
    "credit_topped_up": ("account", {"opened"}, None),
    "credit_reversed": ("account", {"opened"}, None),
    "credit_expired": ("account", {"opened"}, None),
    "key_created": ("key", {None, "revoked"}, "created"),
    "key_revoked": ("key", {None, "created"}, "revoked"),
    "spend_accepted": ("spend", {None}, "accepted"),
    "spend_authorized": ("spend", {"accepted", "earned"}, None),
    "spend_earned": ("spend", {"accepted"}, "earned"),
    "spend_released": ("spend", {"accepted"}, "released"),
    "spend_paid_out": ("spend", {"earned"}, "closed"),
    "spend_failed": ("spend", {"earned"}, "closed"),
    "user_disabled": ("user", {None, "enabled"}, "disabled"),
    "user_enabled": ("user", {"disabled"}, "enabled"),
    "user_erased": ("user", {None, "enabled", "disabled"}, "erased"),
    "session_started": ("session", {None}, "started"),
    "session_ended": ("session", {"started"}, "ended"),
    "operator_transfer_recorded": ("transfer", {None, "recorded", "reversed"}, "recorded"),
    "operator_transfer_reversed": ("transfer", {"recorded"}, "reversed"),
    "transaction_cost_recorded": ("cost", {None, "reversed"}, "recorded"),
    "operator_cost_reversed": ("cost", {"recorded"}, "reversed"),
    "operator_break_explained": ("break", {None, "explained"}, "explained"),
    "operator_period_closed": ("period", {None, "recorded"}, "recorded"),
    "operator_period_reviewed": ("period", {None, "recorded"}, "recorded"),
    "operator_period_reopened": ("period", {None, "recorded"}, "recorded"),
    "operator_attestation_recorded": ("attestation", {None, "recorded"}, "recorded"),
    "operator_invoice_issued": ("invoice", {None, "recorded"}, "recorded"),
    "ledger_recovered": ("recovery", {None}, "recovered"),
    "network_searched": ("recovery", {"recovered"}, None),
}
IDS = {"chat": "chat_id", "spend": "chat_id", "account": "account_id", "key": "key_id", "user": "user_id", "session": "session_id", "recovery": "generation", "transfer": None, "cost": None, "break": "break_id", "attestation": None, "invoice": "series"}
# which side of an account loses and which one gets; the others are the operator's, and may go below zero
POSTINGS = {
    "credit_granted": ("granted", "available"),
    "credit_topped_up": ("bought", "available"),
    "credit_reversed": ("available", "bought"),
    "credit_expired": ("available", "expired"),
    "credit_held": ("available", "held"),
    "credit_captured": ("held", "used"),
    "credit_released": ("held", "available"),
    "credit_corrected": ("used", "available"),
}
SOLID = {"available", "held", "used"}
NOTES = {
    "payment_rejected", "request_refused", "auth_denied", "refusals_counted", "quotes_issued", "payment_replay_denied",
    "nonce_replay_denied", "enqueue_failed", "dry_run_allowed",
    "dry_run_denied", "dry_run_error", "operator_token_created", "operator_token_revoked", "operator_config_loaded",
    "operator_config_refused", "operator_runner_paused", "operator_runner_resumed", "operator_quotes_revoked", "operator_models_loaded",
    "operator_invited", "operator_role_granted", "operator_role_withdrawn", "operator_factor_added", "operator_factors_removed",
    "operator_signed_in", "operator_sign_in_refused", "operator_acted",
    "operator_usage_implausible", "operator_payouts_postponed",
    "sign_in_refused", "sessions_counted", "data_pruned", "rate_changed", "database_continued",
}
OPENINGS = {"call_triggered", "payment_recovered", "redelivery_requested", "quote_issued", "payment_verified", "auth_passed", "settlement_started", "enqueued", "enqueued_again", "operator_sweep_recorded"}
KNOWN = NOTES | OPENINGS | set(STEPS) | set(PAYMENT_MOVES) | set(CALL_MOVES)
FIELDS = ["at", "data", "lane", "schema", "seq", "stream", "type", "version"]


def place_of(data):
    return f"{data['network'].split(':')[1]}:{data['transaction']}:{data['log_index']}"


def counts_of(kind, data):
    """What an event adds to the counters: a summarised quote was counted by its summary."""
    if kind == "quote_issued" and data.get("summarised"):
        return []
    if kind == "refusals_counted":
        return [(kind, 1), *data["counts"].items()]
    if kind == "quotes_issued":
        return [(kind, 1), ("quote_issued", sum(job["count"] for job in data["quotes"]))]
    return [(kind, 1)]


TERMS = ("network", "transfer_method", "asset", "symbol", "decimals", "amount", "pay_to", "eip712_name", "eip712_version", "submitter")


class Ledger:
    def __init__(self):
        self.seq, self.at, self.counts = 0, "", {}
        self.versions, self.quotes, self.payments, self.transfers = {}, set(), {}, {}
        self.claimed, self.pending_nonce = set(), {}
        # the options of each quote, and the payments that are said to be signed by a contract
        self.offered, self.of_contracts = {}, set()
        self.jobs, self.verified = {}, {}
        # who alone may pay a quote, and the hash of the only body it is for; zero for any
        self.bindings = {}
        # caller nonces and payment ids: the payment that has each, and those that each payment was started with
        self.holders, self.credentials = {}, {}
        self.steps, self.credit, self.chats, self.spends, self.spend_of = {}, {}, {}, set(), {}
        self.bound, self.signed_in, self.landed_spends = {}, {}, set()
        # of chats that have not ended: what a million tokens cost, in billionths
        self.prices = {}
        # by stream: what an operator said of a transfer that is no payment
        self.unexplained_transfers = {}
        self.costs = {}
        # by account: what is left of granted and of bought credit; by recovered chat: the parts of its capture
        self.parts, self.captures, self.recovered_chat = {}, {}, None
        self.top_ups, self.generation, self.recovered, self.selling = {}, 1, set(), set()
        # the periods of the books that are closed, in order
        self.periods = []
        # calls that triggers made: by stream their id and state, and the firings that were used
        self.triggered, self.firings = {}, set()

    def next(self, raw):
        self.seq += 1
        try:
            event = json.loads(raw)
            is_canonical = canonical(event) == raw
        except ValueError:
            raise Wrong("this is not JSON")
        if not isinstance(event, dict) or list(event) != FIELDS or not is_canonical:
            raise Wrong("this is not an event in canonical JSON")
        if event["seq"] != self.seq:
            raise Wrong(f"event {event['seq']} was found, but {self.seq} was expected")
        stream, kind = event["stream"], event["type"]
        if event["lane"] != 1 or event["schema"] != 1:
            raise Wrong("its lane or schema is not supported")
        if kind not in KNOWN:
            raise Wrong(f"unknown event type {kind}")
        version = self.versions.get(stream, 0) + 1
        if event["version"] != version:
            raise Wrong(f"{kind} is version {event['version']} of its stream, not {version}")
        if event["at"] < self.at:
            raise Wrong(f"{kind} is older than the event before it")
        self.versions[stream], self.at = version, event["at"]
        for counted, count in counts_of(kind, event["data"]):
            self.counts[counted] = self.counts.get(counted, 0) + count
        self.apply_to_entity(stream, kind, event["data"])
        self.apply(stream, kind, event["data"], version)

    def apply_to_entity(self, stream, kind, data):
        if kind not in STEPS:
            if stream in self.steps and kind not in NOTES:
                raise Wrong(f"{kind} belongs to a quote, but this is not the stream of a quote")
            return
        entity, before, after = STEPS[kind]
        named = place_of(data) if entity == "transfer" else f"{data['network'].split(':')[1]}:{data['transaction']}" if entity == "cost" else "books" if entity == "period" else None if entity == "attestation" else data.get(IDS[entity])
        if stream != f"{entity}:{named}" if named is not None else not stream.startswith(f"{entity}:"):
            raise Wrong(f"the data of {kind} do not match the entity of its stream")
        step = self.steps.get(stream)
        if step not in before:
            raise Wrong(f"{kind} of a {entity} that is {step or 'missing'}")
        self.steps[stream] = after or step
        if entity == "spend":
            self.claim_spend(stream, kind, data)
        if entity == "transfer":
            self.record_transfer(stream, kind, data)
        if entity == "cost":
            self.move_cost(stream, kind, data)
        if entity == "period":
            self.move_period(kind, data)
        if kind == "operator_invoice_issued" and data["number"] != self.versions[stream]:
            raise Wrong("an invoice does not have the next number of its series")
        if kind == "ledger_recovered":
            self.generation += 1
            if data["generation"] != self.generation or data["kept_seq"] >= self.seq:
                raise Wrong("a recovery begins the next generation of the log and names the last event before it")
        if kind == "chat_admitted" and "price" in data:
            self.prices[stream] = data["price"]
        if kind == "chat_completed" and data["ending"] != "recovered" and stream in self.prices:
            self.check_cost(data, self.prices.pop(stream))
        if kind == "chat_completed":
            self.recovered_chat = stream if data["ending"] == "recovered" else None
        if kind in POSTINGS:
            self.move_credit(stream, kind, data["account_id"], int(data["amount_micros"]))

    def move_period(self, kind, data):
        """Periods are closed without a gap, reviewed by another person, and opened again from the last one on."""
        span = (data["from_ms"], data["to_ms"])
        if kind == "operator_period_closed":
            if span[0] >= span[1] or (self.periods and self.periods[-1]["span"][1] != span[0]):
                raise Wrong("the period does not begin where the last closed one ends")
            self.periods.append({"span": span, "by": data["operator"].lower(), "report": data["report_sha256"], "reviewed": False})
            return
        found = [period for period in self.periods if period["span"] == span]
        if not found:
            raise Wrong("the period is not closed")
        if kind == "operator_period_reopened":
            if found[0] is not self.periods[-1]:
                raise Wrong("a later period is closed")
            self.periods.pop()
        elif found[0]["reviewed"] or found[0]["by"] == data["operator"].lower() or found[0]["report"] != data["report_sha256"]:
            raise Wrong("a period is reviewed once, by another person than the one who closed it, and by its report")
        else:
            found[0]["reviewed"] = True

    def check_cost(self, data, price):
        """Micros, rounded up: each kind of tokens at its price, those of the cache at that of input where they have none."""
        cached, written = data.get("cached_tokens", 0), data.get("cache_write_tokens", 0)
        plain = data["prompt_tokens"] - cached - written
        if plain < 0:
            raise Wrong("more of its prompt came from the cache than it has")
        nanos = plain * int(price["input_nanos"]) + data["completion_tokens"] * int(price["output_nanos"])
        nanos += cached * int(price.get("cached_input_nanos", price["input_nanos"]))
        nanos += written * int(price.get("cache_write_nanos", price["input_nanos"]))
        if int(data["cost_micros"]) != min(-(-nanos // 10**9), 10**16 - 1):
            raise Wrong("its cost does not follow from its tokens and the price of its admission")

    def claim_spend(self, stream, kind, data):
        spend = (data["network"], data["contract"], data["commitment"], data["nonce"])
        if kind == "spend_accepted":
            if spend in self.spends:
                raise Wrong("this spend was claimed before")
            self.spends.add(spend)
            self.spend_of[stream] = spend
            self.bind_spend(stream, data)
        if self.spend_of.get(stream) != spend:
            raise Wrong("it names a spend other than the accepted one")
        if kind == "spend_authorized":
            self.landed_spends.add(stream)
        if kind == "spend_released":
            self.spends.discard(spend)
            signed, public = self.signed_in[stream], data.get("may_have_landed", False)
            if stream in self.landed_spends and not public:
                raise Wrong("it landed, so it stays bound to its request")
            if not public and self.bound[signed][1] == stream:
                del self.bound[signed]

    def bind_spend(self, stream, data):
        """A spend pays for no other request than its first, unless it was released before it could be public."""
        names = ("network", "contract", "commitment", "service_id", "job_index", "amount", "operator", "nonce", "expiry")
        signed = tuple(data[name] for name in names)
        binding, _ = self.bound.setdefault(signed, (data["binding"], stream))
        if binding != data["binding"]:
            raise Wrong("this spend is bound to another request")
        self.signed_in[stream] = signed

    def move_credit(self, stream, kind, account, micros):
        source, target = POSTINGS[kind]
        books = [(f"account {account}", self.credit.setdefault(account, {}), SOLID)]
        if stream.startswith("chat:"):
            books.append(("this chat", self.chats.setdefault(stream, {}), {"held", "used"}))
        for owner, sides, solid in books:
            sides[source] = sides.get(source, 0) - micros
            sides[target] = sides.get(target, 0) + micros
            if source in solid and sides[source] < 0:
                raise Wrong(f"{kind}: {owner} has {sides[source]} micros {source}")
        self.split_credit(stream, kind, account, micros)

    def split_credit(self, stream, kind, account, micros):
        """Granted credit is used and expires first, bought credit is reversed and given back first."""
        parts = self.parts.setdefault(account, [0, 0])
        if kind == "credit_granted":
            parts[0] += micros
        elif kind == "credit_topped_up":
            parts[1] += micros
        elif kind in ("credit_captured", "credit_expired"):
            granted = min(micros, parts[0])
            parts[0] -= granted
            parts[1] -= micros - granted
            if kind == "credit_captured" and self.recovered_chat == stream:
                self.captures[stream] = micros - granted
        elif kind == "credit_reversed":
            bought = min(micros, parts[1])
            parts[1] -= bought
            parts[0] -= micros - bought
        elif kind == "credit_corrected":
            bought = min(micros, self.captures.pop(stream, micros))
            parts[1] += bought
            parts[0] += micros - bought
        if min(parts) < 0 or sum(parts) != sum(self.credit[account].get(side, 0) for side in ("available", "held")):
            raise Wrong(f"account {account}: granted and bought credit are not what is available and held")

    def apply(self, stream, kind, data, version):
        mine = self.payments.setdefault(stream, {}) if stream in self.quotes or stream in self.recovered else {}
        if kind == "call_triggered":
            self.trigger(stream, data, version)
        elif stream in self.triggered:
            self.move_triggered(stream, kind, data)
        elif kind == "payment_recovered":
            self.recover(stream, data, version)
        elif kind == "redelivery_requested":
            payment = mine.get((data["network"], data["asset"], data["payer"], data["payment_nonce"]))
            if payment is None or payment.get("waits") is not True or payment["refunded"]:
                raise Wrong("only a recovered payment that was not refunded is delivered again, and once")
            if payment.get("refunding"):
                raise Wrong("a delivery was requested although a refund is started")
            payment["waits"] = False
            # the lost quote, where the ledger still has it
            self.check_binding(data.get("quote_digest"), data["payer"], data.get("body_keccak256"))
        elif kind == "quote_issued":
            if version != 1:
                raise Wrong("a quote must be the first event of its stream")
            if quote_digest(data) != stream:
                raise Wrong("the terms of the quote do not match its digest")
            self.quotes.add(stream)
            self.offered[stream] = [option if isinstance(option, str) else {k: v for k, v in option.items() if k != "credit_micros"} for option in data["options"]]
            self.pending_nonce[stream] = None
            self.jobs[stream] = (data["service_id"], data["job_index"])
            if int(data["requester"], 16) or int(data["inputs_hash"], 16):
                self.bindings[stream] = (data["requester"], data["inputs_hash"])
            for o in data["options"]:
                if isinstance(o, dict) and "credit_micros" in o:
                    self.selling.add((stream, o["network"], o["asset"], o["amount"], o["credit_micros"]))
        elif kind == "auth_passed" and stream in self.quotes:
            if "caller_nonce_sha256" in data:
                self.pending_nonce[stream] = (data["caller"], self.jobs[stream], data["caller_nonce_sha256"])
        elif kind == "auth_passed":
            # of a request that found no capacity after it: it claims nothing
            if not stream.startswith("request:"):
                raise Wrong("a caller was authorized for no quote and no request")
        elif kind == "payment_verified":
            self.pending_nonce[stream] = None
            self.verified[stream] = (data["network"], data["asset"], data["payer"], data["payment_nonce"])
            (self.of_contracts.add if data.get("signed_by") == "contract" else self.of_contracts.discard)(stream)
        elif kind == "settlement_started":
            self.start(stream, mine, data["payment"], data.get("payment_id"), "upstream" in data)
            self.check_order(mine, stream, data)
            self.check_binding(stream, data["payment"]["payer"], data.get("body_keccak256"))
        elif kind in PAYMENT_MOVES:
            self.move_payment(stream, kind, data, mine)
        elif kind in ("enqueued", "enqueued_again"):
            waiting = [name for name, p in mine.items() if p["status"] == "settled" and p["call"] is None and not p["refunded"] and not p.get("refunding") and not p.get("waits") and p["nonce"] == data["payment_nonce"]]
            if not waiting:
                raise Wrong("enqueued, but no settled payment of that nonce waits for its call")
            payment = mine[waiting[0]]
            if "most" in payment and int(payment["amount"]) > payment["used"]:
                raise Wrong("a call was enqueued, but its payment moved more than was used")
            if payment.get("was_enqueued", False) != (kind == "enqueued_again"):
                raise Wrong("a call is enqueued once, and again only after it was taken back")
            payment.update(call="enqueued", call_id=data["call_id"], was_enqueued=True, failure=None)
            self.take_credentials(waiting[0])
        elif kind in CALL_MOVES:
            before, after = CALL_MOVES[kind]
            found = [p for p in mine.values() if p["call"] is not None and p["call_id"] == data["call_id"]]
            if not found or found[0]["call"] not in before:
                raise Wrong(f"{kind} of a call that is {found[0]['call'] if found else 'missing'}")
            if kind == "operator_requeued" and (found[0]["refunded"] or found[0].get("refunding")):
                raise Wrong("a call was requeued although its payment was refunded, or its refund is started")
            found[0]["call"] = after or found[0]["call"]
            if kind in ("operator_requeued", "delivery_failed"):
                # a client that left has most of its answer
                is_failure = kind == "delivery_failed" and data["reason"] != "client_left"
                found[0]["failure"] = "attempt" if is_failure else None
            if kind == "completed":
                found[0]["failure"] = "answer" if data.get("http_status", 0) >= 400 else None
                # delivered after it was asked for: nothing is left to decide
                if found[0].get("request") != "declined":
                    found[0]["request"] = None
        elif kind == "operator_sweep_recorded":
            if version != 1 or stream != f"sweep:{data['network'].split(':')[1]}:{data['transaction']}:{data['log_index']}":
                raise Wrong("a sweep must be the only event of the stream named after its transfer")
            self.claim_transfer(stream, data)
        elif kind == "credit_topped_up":
            self.top_up(data)
        elif kind == "credit_reversed":
            self.reverse_top_up(data)

    def trigger(self, stream, data, version):
        firing = (data["trigger"], data["trigger_name"], data["trigger_id"])
        named = ["tollbook trigger", data["ledger_id"], *firing]
        # earlier versions left the body out
        keys = ["0x" + hashlib.sha256(canonical(parts)).hexdigest() for parts in (named, [*named, data["body_sha256"]])]
        key = data["idempotency_key"]
        if version != 1 or key not in keys or stream != f"call:{key}":
            raise Wrong("a triggered call must be the first event of the stream named by its trigger, id and body")
        if firing in self.firings:
            raise Wrong("this firing was claimed before")
        self.firings.add(firing)
        self.triggered[stream] = {"id": data["call_id"], "state": "enqueued"}

    def move_triggered(self, stream, kind, data):
        if kind in NOTES:
            return
        call = self.triggered[stream]
        before, after = CALL_MOVES.get(kind, (set(), None))
        if call["state"] not in before or data["call_id"] != call["id"]:
            raise Wrong(f"{kind} of a triggered call that is {call['state']}, or of another one")
        call["state"] = after or call["state"]

    def top_up(self, data):
        payer = (data["network"], data["asset"], data["payer"])
        paid = [p for name, p in self.payments.get(data["quote_digest"], {}).items() if name[:3] == payer]
        if not any(p["call"] is not None and p["call_id"] == data["call_id"] and p["amount"] == data["atoms"] for p in paid):
            raise Wrong("credit was bought, but there is no payment of that amount for that call")
        if data["call_id"] in self.top_ups:
            raise Wrong("this call has bought credit before")
        if (data["quote_digest"], data["network"], data["asset"], data["atoms"], data["amount_micros"]) not in self.selling:
            raise Wrong("credit was bought that its quote does not sell for that payment")
        ordered = [p["credit_for"] for p in paid if p["call_id"] == data["call_id"] and "credit_for" in p]
        if ordered and ordered[0] != data["account_id"]:
            raise Wrong("the payer has ordered the credit for another account")
        self.top_ups[data["call_id"]] = {"account": data["account_id"], "micros": int(data["amount_micros"]), "atoms": int(data["atoms"]), "undone": 0, "taken": 0}

    def reverse_top_up(self, data):
        """Credit goes back in proportion to the atoms that were refunded, rounded down in sum; without atoms all that is left."""
        bought = self.top_ups.get(data["call_id"])
        if bought is None or bought["account"] != data["account_id"] or bought["undone"] >= bought["atoms"]:
            raise Wrong("credit is reversed that this call has not bought for this account")
        undone = bought["undone"] + int(data["atoms"]) if "atoms" in data else bought["atoms"]
        refunded = [p["refunded"] for p in self.payments.get(data["quote_digest"], {}).values() if p["call_id"] == data["call_id"]]
        if not bought["undone"] < undone <= bought["atoms"] or ("atoms" in data and undone > sum(refunded)):
            raise Wrong("credit is reversed for more atoms than were refunded")
        taken = bought["micros"] * undone // bought["atoms"]
        if int(data["amount_micros"]) + int(data["missing_micros"]) != taken - bought["taken"]:
            raise Wrong("the credit that is reversed is not what the atoms that were refunded have bought")
        bought.update(undone=undone, taken=taken)

    def start(self, stream, mine, payment, identifier, is_asked_first):
        if stream not in self.quotes or mine:
            raise Wrong("a payment was started on a stream that has no open quote")
        name = (payment["network"], payment["asset"], payment["payer"], payment["nonce"])
        if self.verified.pop(stream, None) != name:
            raise Wrong("this payment was not verified before it was started")
        self.check_terms(stream, payment)
        claim = (payment["transfer_method"], name)
        if claim in self.claimed:
            raise Wrong("this payment was claimed before")
        self.claimed.add(claim)
        nonce = self.pending_nonce[stream]
        claims = [("the caller's nonce", nonce)] if nonce is not None else []
        if identifier is not None:
            claims.append(("the payer's payment id", (payment["payer"], identifier)))
        self.credentials[name] = claims
        self.take_credentials(name)
        mine[name] = {"status": "authorized" if is_asked_first else "settling", "amount": payment["amount"], "nonce": payment["nonce"], "call": None, "call_id": None, "refunded": 0}
        if payment["transfer_method"] == "upto":
            mine[name].update(most=payment["amount"], used=0)

    def check_terms(self, stream, payment):
        offered = self.offered[stream]
        terms = {key: payment[key] for key in TERMS if key in payment}
        hashes = [option for option in offered if isinstance(option, str)]
        # the hash of an option that sells credit is also of the credit, which the payment does not name
        sells = any(sold[0] == stream for sold in self.selling)
        if terms not in offered and not (hashes and (sells or "0x" + cached_hash(canonical(terms)).hex() in hashes)):
            raise Wrong("the payment matches no option of its quote")
        if stream not in self.of_contracts:
            signature = bytes.fromhex(payment["signature"][2:])
            if signer_of(authorization_digest(payment), signature) != payment["payer"]:
                raise Wrong("the signature is not the payer's")

    def check_order(self, mine, stream, data):
        order = data.get("top_up_order")
        if order is None:
            return
        payment = data["payment"]
        digest = "0x" + hashlib.sha256(order.encode()).hexdigest()
        if data["body_sha256"] != digest or payment["nonce"] != digest:
            raise Wrong("the top-up order is not the body that its payer has signed")
        _, version, account, units = order.split(":")[:4]
        inputs = self.bindings.get(stream, ("0x0", "0x0"))[1]
        if version == "2" and (inputs != "0x" + keccak256(order.encode()).hex() or int(payment["amount"]) % int(units)):
            raise Wrong("the quote is not for this order of several top-ups")
        name = (payment["network"], payment["asset"], payment["payer"], payment["nonce"])
        mine[name]["credit_for"] = int(account)

    def check_binding(self, quote, payer, body):
        requester, inputs = self.bindings.get(quote, ("0x0", "0x0"))
        if int(requester, 16) and requester != payer:
            raise Wrong("the quote is only for another payer")
        if int(inputs, 16) and inputs != body:
            raise Wrong("the quote is only for another body")

    def take_credentials(self, name):
        for credential in self.credentials.get(name, []):
            if self.holders.setdefault(credential, name) != name:
                raise Wrong(f"{credential[0]} was claimed before")

    def recover(self, stream, data, version):
        # a nonce of Permit2 is unique for its payer, whatever the asset
        asset = "" if data["transfer_method"] in ("permit2", "upto") else data["asset"]
        fingerprint = "/".join([data["network"], data["transfer_method"], asset, data["payer"], data["payment_nonce"]])
        if version != 1 or "0x" + hashlib.sha256(fingerprint.encode()).hexdigest() != stream:
            raise Wrong("a recovered payment must be the first event of the stream named by its fingerprint")
        if ("generation" in data) == ("refused" in data):
            raise Wrong("either a recovery has found a payment, or a gateway has refused it")
        if data.get("generation", 1) > self.generation:
            raise Wrong("a payment was recovered before the recovery")
        name = (data["network"], data["asset"], data["payer"], data["payment_nonce"])
        claim = (data["transfer_method"], name)
        if claim in self.claimed:
            raise Wrong("this payment was claimed before")
        self.claimed.add(claim)
        self.recovered.add(stream)
        self.claim_transfer(stream, data)
        self.payments[stream] = {name: {"status": "settled", "amount": data["amount"], "nonce": data["payment_nonce"], "call": None, "call_id": None, "refunded": 0, "waits": True}}

    def move_payment(self, stream, kind, data, mine):
        before, after = PAYMENT_MOVES[kind]
        payment = mine.get((data["network"], data["asset"], data["payer"], data["payment_nonce"]))
        if payment is None:
            raise Wrong(f"{kind} names a payment that was never started")
        if payment["status"] not in before:
            raise Wrong(f"{kind} of a payment that is {payment['status']}")
        if kind == "upstream_answered":
            if ("used" in data) != ("used" in payment):
                raise Wrong("what was used is said for an exact amount, or not said for the most")
            if "used" in data:
                if not 0 < int(data["used"]) <= int(payment["most"]):
                    raise Wrong("nothing was used, or more than the amount signed")
                payment["used"] = int(data["used"])
        if kind == "payment_settled" and "most" in payment:
            if not 0 < int(data["amount"]) <= int(payment["most"]):
                raise Wrong("the amount settled is more than the amount signed")
            payment["amount"] = data["amount"]
        elif kind == "payment_settled" and data["amount"] != payment["amount"]:
            raise Wrong("the amount settled differs from the amount signed")
        if kind == "refunded":
            payment["refunded"] += int(data["amount"])
            if int(data["amount"]) == 0 or payment["refunded"] > int(payment["amount"]):
                raise Wrong("more was refunded than is left of the signed amount")
            if (data["refunded_to"] == data["payer"]) == ("evidence" in data):
                raise Wrong("a refund to another address than the payer's has evidence, and no other has")
            started = payment.pop("refunding", None)
            if not started and payment["status"] != "settled":
                raise Wrong("a payment that is not settled was refunded, and no refund of it was started")
            if started and (started["amount"], started["refund_to"]) != (data["amount"], data["refunded_to"]):
                raise Wrong("another refund than the one that is started was recorded")
        self.move_request(kind, payment)
        self.move_refund(kind, data, payment)
        payment["status"] = after or payment["status"]
        if data.get("call") == "withdrawn":
            payment["call"] = None
        if kind == "settlement_failed":
            # free for another payment once this one can never land: if it lands after all, it takes them again
            failed = (data["network"], data["asset"], data["payer"], data["payment_nonce"])
            for credential in self.credentials[failed]:
                if self.holders.get(credential) == failed:
                    del self.holders[credential]
        if kind in ("payment_settled", "settlement_confirmed", "refunded") and "log_index" in data:
            self.claim_transfer(stream, data)
        if kind == "settlement_reorged":
            for transfer in [t for t, s in self.transfers.items() if s == stream and t[:2] == (data["network"], data["transaction"])]:
                del self.transfers[transfer]

    def move_request(self, kind, payment):
        """A payer asks for the refund of a call that failed; an operator decides where it is not due anyway."""
        call, request = payment["call"], payment.get("request")
        if kind == "refund_requested":
            is_owed = payment.get("waits") is not False if call is None else call in ("dead_lettered", "given_up")
            if request or payment["refunded"] >= int(payment["amount"]):
                raise Wrong("a refund is asked for twice, or after it was made")
            if not is_owed and payment.get("failure") != ("answer" if call == "completed" else "attempt"):
                raise Wrong("a refund is asked for of a call that has not failed")
            payment["request"] = "open"
        elif kind in ("refund_request_granted", "refund_request_declined"):
            decidable = ("completed", "given_up") if kind == "refund_request_granted" else ("completed", "enqueued", "delivered")
            if request != "open" or call not in decidable:
                raise Wrong(f"{kind}, but no request waits for that decision")
            payment["request"] = "granted" if kind == "refund_request_granted" else "declined"

    def move_refund(self, kind, data, payment):
        """Between the start of a refund and its end nothing is delivered; the chain ends it, or two persons."""
        started = payment.get("refunding")
        if kind == "refund_started":
            is_granted = payment["call"] == "completed" and payment.get("request") == "granted"
            if started or (payment["call"] not in (None, "dead_lettered", "given_up") and not is_granted):
                raise Wrong("a refund is started beside another one, or beside a call that may be delivered")
            if payment["call"] is None and payment.get("waits") is False:
                raise Wrong("a refund is started although its payer has asked for delivery")
            if int(data["amount"]) == 0 or payment["refunded"] + int(data["amount"]) > int(payment["amount"]):
                raise Wrong("a refund is started of more than is left of the signed amount")
            if data["refund_to"] != data["payer"]:
                raise Wrong("a refund is started to another address than the payer's")
            payment["refunding"] = {**data}
        elif kind in ("refund_sent", "refund_not_sent", "refund_abandoned") and not started:
            raise Wrong(f"{kind} of a payment of which no refund is started")
        elif kind == "refund_sent":
            # the nonce of another account, such as one that sends a Safe's transaction, proves nothing
            if "sender_nonce" in data and data["sender"] == started.get("sender"):
                started["sender_nonce"] = data["sender_nonce"]
            started.pop("not_sent_by", None)
        elif kind == "refund_not_sent":
            started["not_sent_by"] = data["operator"].lower()
        elif kind == "refund_abandoned":
            needed = {"nonce_spent": "sender_nonce", "operators": "not_sent_by"}[data["proof"]]
            if needed not in started or (data["proof"] == "operators") == ("block_number" in data):
                raise Wrong("nothing proves that a refund that is given up cannot land")
            if started.get("not_sent_by") == data["operator"].lower() and data["proof"] == "operators":
                raise Wrong("one operator alone says that a refund was not sent")
            del payment["refunding"]

    def claim_transfer(self, stream, data):
        transfer = (data["network"], data["transaction"], data["log_index"])
        if transfer in self.transfers:
            raise Wrong("this on-chain transfer was claimed before")
        self.transfers[transfer] = stream

    def move_cost(self, stream, kind, data):
        terms = {key: data[key] for key in COST_TERMS if key in data}
        if kind == "transaction_cost_recorded":
            self.costs[stream] = terms
        elif self.costs.pop(stream) != terms:
            raise Wrong("a reversal takes back another cost than the one that was recorded")

    def record_transfer(self, stream, kind, data):
        before = self.unexplained_transfers.pop(stream, None)
        if kind == "operator_transfer_reversed":
            for place in [before] + ([before["returned"]] if "returned" in before else []):
                del self.transfers[(data["network"], place["transaction"], place["log_index"])]
            return
        if (data["as"] == "returned") != ("returned" in data):
            raise Wrong("money is returned by another transfer, and by no other use")
        if data["pay_to"] == data["received_from"] and data["as"] != "own":
            raise Wrong("a transfer from a payee to itself is the operator's own")
        if before is None:
            if data["as"] == "returned":
                raise Wrong("money was returned that was not in suspense")
            self.claim_transfer(stream, data)
        else:
            names = ("network", "asset", "symbol", "decimals", "pay_to", "received_from", "amount", "transaction", "block_number", "block_hash", "log_index")
            if before["as"] != "suspense" or data["as"] not in ("income", "returned"):
                raise Wrong("only money in suspense becomes income or is returned")
            if any(before[name] != data[name] for name in names):
                raise Wrong("it describes another transfer than the record before it")
        if "returned" in data:
            self.claim_transfer(stream, {"network": data["network"], **data["returned"]})
        self.unexplained_transfers[stream] = data

    def compare(self, trailer):
        if trailer["seq"] != self.seq:
            raise Wrong(f"the trailer says {trailer['seq']} events, but the export has {self.seq}")
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
    faults += [f"{path}: it covers {size} events, but the ledger has {tree.size}" for size, _, path in heads if size > 0]
    for fault in ([first] if first else []) + faults:
        print(f"WRONG {fault}")
    print(f"{tree.size} events, root {base64.b64encode(tree.root()).decode()}")
    if ledger.parts:
        granted, bought = (sum(parts[side] for parts in ledger.parts.values()) for side in (0, 1))
        print(f"credit left: {granted} granted, {bought} bought")
    return 1 if first or faults else 0


if __name__ == "__main__":
    sys.exit(main())
