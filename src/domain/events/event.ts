import { z } from 'zod';
import { canonicalJson } from '../values/canonical-json.ts';
import { chatEventSchemas } from './chat-event.ts';
import { identityEventSchemas } from './identity-event.ts';
import { authModes } from '../payments/job.ts';
import { operatorScopes } from '../identity/operator-scope.ts';
import { transferMethods } from '../payments/schemes/schemes.ts';
import { identifierForm } from '../payments/payment-identifier.ts';
import { runnerName } from '../values/runner-name.ts';
import { spendEventSchemas } from './spend-event.ts';

/**
 * Everything that can stand in the ledger, as one closed, versioned union; those of model chat and of
 * people are in chat-event.ts and identity-event.ts.
 * Only checked values enter: no free text from a client or a peer, amounts as decimal strings, times as Unix seconds.
 */
const hex32 = z.string().regex(/^0x[0-9a-f]{64}$/);
const address = z.string().regex(/^0x[0-9a-f]{40}$/);
const hexBytes = z
  .string()
  .regex(/^0x(?:[0-9a-f]{2})*$/)
  .max(8194);
const atoms = z.string().regex(/^(?:0|[1-9]\d{0,77})$/);
const network = z.string().regex(/^eip155:[1-9]\d{0,15}$/);
const symbol = z.string().regex(/^[A-Za-z0-9._-]{1,16}$/);
const id = z.int().min(0);
/** A machine word: our own, or a peer's that passed the same test. */
const reason = z.string().regex(/^[a-z0-9_]{1,100}$/);

/** A runner's name from the config. */
const runner = z.string().regex(runnerName);

/** The token contract's EIP-712 domain: kept with the terms, so that a payment can be settled again without the config. */
const domainText = z.string().regex(/^[ -~]{1,64}$/);
const tokenDomain = { eip712_name: domainText, eip712_version: domainText };

const settlementOption = z.strictObject({
  network,
  transfer_method: z.enum(transferMethods),
  asset: address,
  symbol,
  decimals: z.int().min(0).max(36),
  amount: atoms,
  pay_to: address,
  ...tokenDomain,
});

const quoteIssued = z.strictObject({
  service_id: id,
  job_index: id,
  price_wei: atoms,
  options: z.array(settlementOption).min(1),
  requester: address,
  inputs_hash: hex32,
  issued_at: id,
  expires_at: id,
  salt: hex32,
});

/** A payment that was turned away before anything was claimed. Stands in the request's own stream. */
const paymentRejected = z.strictObject({
  service_id: id,
  job_index: id,
  stage: z.enum(['decode', 'match', 'shape', 'verify']),
  reason,
  quote_digest: hex32.optional(),
  payer: address.optional(),
});

const requestRefused = z.strictObject({
  code: reason,
  service_id: id.optional(),
  job_index: id.optional(),
  quote_digest: hex32.optional(),
});

const signedPayment = z.strictObject({
  x402_version: z.union([z.literal(1), z.literal(2)]),
  transfer_method: z.enum(transferMethods),
  network,
  asset: address,
  symbol,
  decimals: z.int().min(0).max(36),
  pay_to: address,
  amount: atoms,
  payer: address,
  nonce: hex32,
  valid_after: atoms,
  valid_before: atoms,
  signature: hexBytes,
  max_timeout_secs: id,
  ...tokenDomain,
});
export type SignedPaymentData = z.infer<typeof signedPayment>;

const settlementStarted = z.strictObject({
  request_id: z.uuid(),
  /** Hash of what the payment paid for: method, path, body, caller and caller nonce. */
  binding: hex32,
  body_sha256: hex32,
  body_bytes: id,
  payment: signedPayment,
  /** The payer's own name for this payment, where it gave one: a claim like its nonce. */
  payment_id: z.string().regex(identifierForm).optional(),
});

/** A caller's own text, but only in this form: visible ASCII without a colon. */
const callerNonce = z.string().regex(/^[!-9;-~]{1,128}$/);

/** One trial of a job's authorization: `code` says why it was not allowed. */
const dryRun = z.strictObject({
  service_id: id,
  job_index: id,
  mode: z.enum(authModes).optional(),
  caller: address.optional(),
  code: reason.optional(),
});

/**
 * Which payment of the stream an event speaks of: a quote that was freed may be paid by a second one, and a payer may use
 * one nonce for two tokens.
 */
const ofPayment = { network, asset: address, payer: address, payment_nonce: hex32 };

/** The block's own, where the node tells it beside the transfer: when it occurred, as the chain says. */
const blockTime = id.optional();

/** Where on the chain a transfer stands. */
const ofTransfer = {
  transaction: hex32,
  block_number: atoms,
  block_hash: hex32,
  block_time: blockTime,
  log_index: id,
};

const paymentSettled = z.strictObject({
  ...ofPayment,
  amount: atoms,
  transaction: hex32,
  /** On whose word: the operator's stands beside an `operator_settlement_resolved`. */
  evidence: z.enum(['facilitator', 'chain', 'operator']),
  block_number: atoms.optional(),
  block_hash: hex32.optional(),
  block_time: blockTime,
  log_index: id.optional(),
});

/** An operator's reasons, for whoever audits: visible ASCII and spaces. */
const evidenceText = z.string().regex(/^[ -~]{1,200}$/);
const operatorName = z.string().regex(/^[A-Za-z0-9._@-]{1,64}$/);

/** The chain showed later what a facilitator had said: from here on the payment is proven. */
const settlementConfirmed = z.strictObject({
  ...ofPayment,
  ...ofTransfer,
});

/** The whole of a payment given back to its payer: from the payee, or from any other account of the operator's. */
const refunded = z.strictObject({
  ...ofPayment,
  amount: atoms,
  refunded_from: address,
  refunded_to: address,
  ...ofTransfer,
  operator: operatorName,
});

/** Money that left a payee for another account of the operator's. */
const sweepRecorded = z.strictObject({
  network,
  asset: address,
  symbol,
  decimals: z.int().min(0).max(36),
  pay_to: address,
  swept_to: address,
  amount: atoms,
  ...ofTransfer,
  operator: operatorName,
});

/** What became of the call of a settlement that turned out not to stand: one that a runner has cannot be taken back. */
const callThen = z.enum(['withdrawn', 'kept']);

const call = { call_id: id };
const attempt = { ...call, attempt: id };

export const eventSchemas = {
  quote_issued: quoteIssued,
  payment_rejected: paymentRejected,
  request_refused: requestRefused,
  payment_verified: z.strictObject({ ...ofPayment, by: z.enum(['facilitator', 'signature', 'chain']) }),
  auth_passed: z.strictObject({
    caller: address,
    mode: z.enum(authModes),
    caller_nonce: callerNonce.optional(),
  }),
  auth_denied: z.strictObject({
    code: reason,
    service_id: id,
    job_index: id,
    caller: address.optional(),
    quote_digest: hex32.optional(),
  }),
  dry_run_allowed: dryRun,
  dry_run_denied: dryRun,
  dry_run_error: dryRun,
  payer_mismatch: z.strictObject({ ...ofPayment, settled_payer: address }),
  replay_denied: z.strictObject({
    claim: z.enum(['payment', 'quote', 'caller_nonce', 'payment_identifier']),
    ...ofPayment,
    // a version 1 payment names no asset
    asset: address.optional(),
    quote_digest: hex32.optional(),
  }),
  settlement_started: settlementStarted,
  payment_settled: paymentSettled,
  settlement_failed: z.strictObject({ ...ofPayment, reason }),
  settlement_unknown: z.strictObject({ ...ofPayment, reason, transaction: hex32.optional() }),
  settlement_confirmed: settlementConfirmed,
  settlement_disproved: z.strictObject({ ...ofPayment, transaction: hex32, reason, call: callThen }),
  settlement_reorged: z.strictObject({
    ...ofPayment,
    transaction: hex32,
    block_number: atoms,
    block_hash: hex32,
    call: callThen,
  }),
  settlement_overdue: z.strictObject({ ...ofPayment, age_secs: id, reason }),
  enqueued: z.strictObject({ ...call, payment_nonce: hex32 }),
  enqueue_failed: z.strictObject({ reason, service_id: id, job_index: id, quote_digest: hex32.optional() }),
  delivered: z.strictObject(attempt),
  delivery_failed: z.strictObject({ ...attempt, reason, retry_at: id.optional() }),
  completed: z.strictObject({ ...attempt, result_sha256: hex32.optional(), result_bytes: id.optional() }),
  dead_lettered: z.strictObject({ ...attempt, reason }),
  refunded,
  operator_sweep_recorded: sweepRecorded,
  operator_settlement_resolved: z.strictObject({
    ...ofPayment,
    paid: z.boolean(),
    transaction: hex32.optional(),
    evidence: evidenceText,
    operator: operatorName,
  }),
  operator_requeued: z.strictObject({ ...call, token_id: id.optional() }),
  operator_token_created: z.strictObject({ token_id: id, scopes: z.array(z.enum(operatorScopes)) }),
  operator_token_revoked: z.strictObject({ token_id: id }),
  operator_config_loaded: z.strictObject({ jobs: id, catalog_sha256: hex32 }),
  operator_models_loaded: z.strictObject({ models: id, models_sha256: hex32 }),
  operator_config_refused: z.strictObject({ mistakes: id }),
  operator_runner_paused: z.strictObject({ runner, reason }),
  operator_runner_resumed: z.strictObject({ runner }),
  ...chatEventSchemas,
  ...identityEventSchemas,
  ...spendEventSchemas,
} as const;

export type EventType = keyof typeof eventSchemas;
export type EventData<T extends EventType> = z.infer<(typeof eventSchemas)[T]>;
/** A fact, before it has a place in the ledger. */
export type LedgerEvent = { [T in EventType]: { readonly type: T; readonly data: EventData<T> } }[EventType];
/** A fact in its place. `at` is RFC 3339 UTC in milliseconds, from the database's clock. */
export type RecordedEvent = LedgerEvent & {
  readonly seq: number;
  readonly stream: string;
  readonly version: number;
  readonly at: string;
};

/** The version of every schema above. A changed meaning gets a new number, never a new reading of old bytes. */
const eventSchemaVersion = 1;

/**
 * The canonical JSON of an event's data, as it will be hashed.
 * Throws ZodError where the data breaks its schema: that is a bug of ours, caught before it is permanent.
 */
export function encodeEventData(event: LedgerEvent): string {
  eventSchemas[event.type].parse(event.data);
  return canonicalJson(event.data);
}

const leafSchema = z.object({
  at: z.string(),
  data: z.record(z.string(), z.unknown()),
  schema: z.literal(eventSchemaVersion),
  seq: z.int().positive(),
  stream: z.string(),
  type: z.string(),
  version: z.int().positive(),
});

/**
 * Reads one event back from its leaf bytes or their text, the only place where it is stored.
 * Throws where they are not an event of this version: a ledger that cannot be read must not be guessed at.
 */
export function decodeLeaf(leaf: Buffer | string): RecordedEvent {
  const { at, data, seq, stream, type, version } = leafSchema.parse(JSON.parse(String(leaf)));
  if (!isEventType(type)) throw new TypeError(`unknown event type ${type} at seq ${seq}`);
  return { seq, stream, version, at, type, data: eventSchemas[type].parse(data) } as RecordedEvent;
}

function isEventType(type: string): type is EventType {
  return Object.hasOwn(eventSchemas, type);
}
