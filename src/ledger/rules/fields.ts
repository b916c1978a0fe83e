import { z } from 'zod';
import { transferMethods } from '../../base/values/transfer-method.ts';
import { operatorNamePattern, operatorTextPattern } from '../../base/values/operator-words.ts';
import { runnerName } from '../../base/values/runner-name.ts';

/** The fields of event data. Every field that two events share is defined here, once. */
/** A regular expression that counts to 64 takes three times as long as a length and a repetition. */
const lowerHex = /^0x[0-9a-f]+$/;
export const hex32 = z.string().length(66).regex(lowerHex);
/** A signature or other bytes of a client, bounded. */
export const hexBytes = z
  .string()
  .regex(/^0x(?:[0-9a-f]{2})*$/)
  .max(8194);
export const address = z.string().length(42).regex(lowerHex);
/** An unsigned integer of up to 256 bits, as a decimal string: amounts in atoms or wei, block numbers, on-chain numbers. */
export const uint256 = z.string().regex(/^(?:0|[1-9]\d{0,77})$/);
/** CAIP-2. */
export const network = z.string().regex(/^eip155:[1-9]\d{0,15}$/);
export const symbol = z.string().regex(/^[A-Za-z0-9._-]{1,16}$/);
export const decimals = z.int().min(0).max(36);
/** An id, a count, a number of seconds or milliseconds. */
export const count = z.int().min(0);
/** Micro-units of the currency of credit, as a decimal string. */
export const micros = z.string().regex(/^(?:0|[1-9]\d{0,15})$/);
/** Billionths of that currency, above zero, for a million tokens. */
const nanosPerMillion = z.string().regex(/^[1-9]\d{0,15}$/);
/** The name of the currency of credit. */
export const currency = z.string().regex(/^[A-Z]{3,8}$/);
/** The prices of a model. Without a price for the cache, its tokens cost as much as input. */
export const modelPrice = z.strictObject({
  input_nanos: nanosPerMillion,
  output_nanos: nanosPerMillion,
  cached_input_nanos: nanosPerMillion.optional(),
  cache_write_nanos: nanosPerMillion.optional(),
});
/** A machine-readable code: Tollbook's own, or a peer's that passed the same test. */
export const reason = z.string().regex(/^[a-z0-9_]{1,100}$/);
export const runner = z.string().regex(runnerName);
/** Why an operator decided so. */
export const operatorText = z.string().regex(operatorTextPattern);
export const operatorName = z.string().regex(operatorNamePattern);
/** A client may name a model: visible ASCII only. */
export const modelNamePattern = /^[!-~]{1,200}$/;
/** The name of a model, an upstream or an account. */
export const visibleName = z.string().regex(modelNamePattern);

export const ofJob = { service_id: count, job_index: count };

/**
 * Names the payment of a stream that an event is about: a quote whose payment failed may be paid by a second one, and a
 * payer may use one nonce for two tokens.
 */
export const ofPayment = { network, asset: address, payer: address, payment_nonce: hex32 };

/**
 * Of the token contract's EIP-712 domain, which a token that Permit2 moves need not have. Stored with the terms, so that a payment can be
 * settled again without the config.
 */
const domainText = z.string().regex(/^[ -~]{0,64}$/);
/** The terms that an offer and a signed payment have in common. */
export const settlementTerms = {
  network,
  transfer_method: z.enum(transferMethods),
  asset: address,
  symbol,
  decimals,
  amount: uint256,
  pay_to: address,
  eip712_name: domainText,
  eip712_version: domainText,
  /** Of `upto`: the only account that may submit the transfer. */
  submitter: address.optional(),
};

/** The block's own time in Unix seconds, if the node reports it with the transfer. */
export const blockTime = count.optional();

/** A transfer's place on the chain. */
export const ofTransfer = {
  transaction: hex32,
  block_number: uint256,
  block_hash: hex32,
  block_time: blockTime,
  log_index: count,
};
