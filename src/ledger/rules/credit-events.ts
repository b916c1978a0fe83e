import { z } from 'zod';
import { accountNamePattern } from '../../base/values/price.ts';
import { type EventFamily, recordOnly } from './descriptor.ts';
import {
  address,
  count,
  currency,
  decimals,
  hex32,
  micros,
  network,
  operatorName,
  operatorText,
  symbol,
  uint256,
} from './fields.ts';

const ofAccount = { account_id: count, amount_micros: micros };
/** Who moved it: an operator's token, or a person, with the reason. */
const byOperator = {
  token_id: count.optional(),
  operator: operatorName.optional(),
  why: operatorText.optional(),
};
/** The paid call that bought the credit, in its quote's stream. */
const ofTopUp = { call_id: count, quote_digest: hex32 };
const ofChat = { ...ofAccount, chat_id: z.uuid(), key_id: count.optional() };

const changesCredit = { ...recordOnly, readModels: ['credit'] } as const;
const inAccount = { of: 'entity', kind: 'account', from: ['opened'] } as const;
const inChat = { of: 'entity', kind: 'chat' } as const;

/** Accounts and their credit. Every move of credit is a posting between two sides of an account. */
export const creditEvents = {
  credit_account_opened: {
    ...changesCredit,
    schema: z.strictObject({ account_id: count, name: z.string().regex(accountNamePattern) }),
    transition: { of: 'entity', kind: 'account', from: ['none'], to: 'opened' },
    bookkeeping: 'context',
  },
  credit_granted: {
    ...changesCredit,
    schema: z.strictObject({ ...ofAccount, ...byOperator, currency: currency.optional() }),
    transition: inAccount,
    credit: ['granted', 'available'],
    bookkeeping: 'posts',
  },
  /** Bought with `atoms` of a token. */
  credit_topped_up: {
    ...changesCredit,
    schema: z.strictObject({
      ...ofAccount,
      ...ofTopUp,
      network,
      asset: address,
      symbol,
      decimals,
      atoms: uint256,
      payer: address,
      /** Of the credit; absent if an earlier version recorded it. */
      currency: currency.optional(),
    }),
    transition: inAccount,
    uniqueness: 'claims',
    credit: ['bought', 'available'],
    bookkeeping: 'posts',
    reopens: 'after_completion',
  },
  /**
   * Credit was bought, and its payment did not stand or was refunded: the rest of the credit is taken back, the rest is
   * `missing_micros`. With `atoms` for that part of the payment alone, else for all of it that is left.
   */
  credit_reversed: {
    ...changesCredit,
    schema: z.strictObject({ ...ofAccount, ...ofTopUp, missing_micros: micros, atoms: uint256.optional() }),
    transition: inAccount,
    uniqueness: 'releases',
    credit: ['available', 'bought'],
    bookkeeping: 'posts',
    reopens: 'always',
  },
  credit_expired: {
    ...changesCredit,
    schema: z.strictObject({ ...ofAccount, ...byOperator }),
    transition: inAccount,
    credit: ['available', 'expired'],
    bookkeeping: 'posts',
  },
  credit_held: {
    ...changesCredit,
    schema: z.strictObject(ofChat),
    transition: { ...inChat, from: ['admitted'] },
    credit: ['available', 'held'],
  },
  credit_captured: {
    ...changesCredit,
    schema: z.strictObject({ ...ofChat, is_estimate: z.boolean() }),
    transition: { ...inChat, from: ['completed'] },
    credit: ['held', 'used'],
    bookkeeping: 'posts',
  },
  credit_released: {
    ...changesCredit,
    schema: z.strictObject(ofChat),
    transition: { ...inChat, from: ['completed', 'failed'] },
    credit: ['held', 'available'],
  },
  /** The part of a capture that was too much. */
  credit_corrected: {
    ...changesCredit,
    schema: z.strictObject(ofChat),
    transition: { ...inChat, from: ['completed'] },
    credit: ['used', 'available'],
    bookkeeping: 'posts',
  },
} as const satisfies EventFamily;
