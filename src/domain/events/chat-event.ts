import { z } from 'zod';

/**
 * What can stand in the ledger about model chat, credit and keys: never a prompt, an answer or an address of a client.
 * Amounts are micro-units of the currency as decimal strings.
 */
const id = z.int().min(0);
const micros = z.string().regex(/^(?:0|[1-9]\d{0,15})$/);
const reason = z.string().regex(/^[a-z0-9_]{1,100}$/);
const address = z.string().regex(/^0x[0-9a-f]{40}$/);
/** What a model can be called. */
export const modelNamePattern = /^[!-~]{1,200}$/;
/** From the config, or from a client that passed the same test. */
const name = z.string().regex(modelNamePattern);

const chatCallers = ['api_key', 'session', 'spend_auth', 'anonymous'] as const;

const caller = {
  caller: z.enum(chatCallers),
  key_id: id.optional(),
  account_id: id.optional(),
};

/** Every move of credit is a posting between two accounts: see `postingOf` in domain/credit-books.ts. */
const ofAccount = { account_id: id, amount_micros: micros };
/** The call that a payment has bought credit with, in its quote's stream. */
const ofTopUp = { call_id: id, quote_digest: z.string().regex(/^0x[0-9a-f]{64}$/) };
const ofChat = { ...ofAccount, chat_id: z.uuid(), key_id: id.optional() };

/** How a completion ended: `recovered` where its process died, and what it cost is the upper bound. */
export const chatEndings = ['completed', 'cut', 'client_left', 'recovered'] as const;

export const chatEventSchemas = {
  chat_admitted: z.strictObject({ ...caller, model: name, streaming: z.boolean() }),
  chat_refused: z.strictObject({ ...caller, code: reason, model: name.optional() }),
  chat_completed: z.strictObject({
    ending: z.enum(chatEndings),
    model: name,
    upstream: name.optional(),
    prompt_tokens: id,
    completion_tokens: id,
    /** Some of it was counted or bounded here, not told by the upstream. */
    is_estimate: z.boolean(),
    cost_micros: micros,
    /** Of the cost, what no hold covered: the upstream wrote more than it was allowed to. */
    uncovered_micros: micros.optional(),
    first_byte_ms: id.optional(),
    latency_ms: id.optional(),
    reason: reason.optional(),
  }),
  /** Nothing was delivered and nothing is charged. */
  chat_failed: z.strictObject({ reason, model: name, upstream: name.optional() }),
  credit_account_opened: z.strictObject({ account_id: id, name }),
  credit_granted: z.strictObject({ ...ofAccount, token_id: id.optional() }),
  /** Bought with a token, of which so many atoms were paid. */
  credit_topped_up: z.strictObject({
    ...ofAccount,
    ...ofTopUp,
    network: z.string().regex(/^eip155:[1-9]\d{0,15}$/),
    asset: address,
    symbol: z.string().regex(/^[A-Za-z0-9._-]{1,16}$/),
    decimals: z.int().min(0).max(36),
    atoms: z.string().regex(/^(?:0|[1-9]\d{0,77})$/),
    payer: address,
  }),
  /** Of a top-up whose payment did not last, what was still there; the rest is missing. */
  credit_reversed: z.strictObject({ ...ofAccount, ...ofTopUp, missing_micros: micros }),
  credit_expired: z.strictObject({ ...ofAccount, token_id: id.optional() }),
  credit_held: z.strictObject(ofChat),
  credit_captured: z.strictObject({ ...ofChat, is_estimate: z.boolean() }),
  credit_released: z.strictObject(ofChat),
  /** Of what was captured, what turned out to be too much. */
  credit_corrected: z.strictObject(ofChat),
  key_created: z.strictObject({ key_id: id, account_id: id, token_id: id.optional() }),
  key_revoked: z.strictObject({ key_id: id, token_id: id.optional() }),
} as const;
