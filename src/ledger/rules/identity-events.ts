import { z } from 'zod';
import { type EventFamily, note, recordOnly } from './descriptor.ts';
import { count, operatorName, reason } from './fields.ts';

const signInMethods = ['password', 'provider', 'wallet'] as const;
export type SignInMethod = (typeof signInMethods)[number];

/** Why a session ended: its owner ended it (alone or with all others), or it expired. */
export const sessionEndings = ['ended', 'expired'] as const;

const provider = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);
const by = { method: z.enum(signInMethods), provider: provider.optional() };
const session = { session_id: z.uuid(), user_id: z.uuid() };

const ofKey = { of: 'entity', kind: 'key' } as const;
const ofSession = { of: 'entity', kind: 'session' } as const;

/** Users, sessions and API keys: ids and codes, never an address of any kind. */
export const identityEvents = {
  user_disabled: {
    ...recordOnly,
    schema: z.strictObject({ user_id: z.uuid(), operator: operatorName }),
    transition: { of: 'entity', kind: 'user', from: ['none', 'enabled'], to: 'disabled' },
  },
  user_enabled: {
    ...recordOnly,
    schema: z.strictObject({ user_id: z.uuid(), operator: operatorName }),
    transition: { of: 'entity', kind: 'user', from: ['disabled'], to: 'enabled' },
  },
  /** All else about the user is deleted. The account had no credit, and gets none any more. */
  user_erased: {
    ...recordOnly,
    schema: z.strictObject({ user_id: z.uuid(), operator: operatorName }),
    transition: { of: 'entity', kind: 'user', from: ['none', 'enabled', 'disabled'], to: 'erased' },
  },
  /** With `is_sign_up` if it is the first event of its user. */
  session_started: {
    ...recordOnly,
    schema: z.strictObject({ ...session, ...by, expires_at: count, is_sign_up: z.literal(true).optional() }),
    transition: { ...ofSession, from: ['none'], to: 'started' },
  },
  session_ended: {
    ...recordOnly,
    schema: z.strictObject({ ...session, reason: z.enum(sessionEndings) }),
    transition: { ...ofSession, from: ['started'], to: 'ended' },
  },
  /** Sessions of about one second and one gateway beyond the allowance, which have no separate events; `sign_ups` of them were first ones. */
  sessions_counted: {
    ...recordOnly,
    schema: z.strictObject({
      sessions: z
        .array(z.strictObject({ method: z.enum(signInMethods), count: count.min(1), sign_ups: count }))
        .min(1),
    }),
    transition: note,
  },
  sign_in_refused: {
    ...recordOnly,
    schema: z.strictObject({ ...by, reason }),
    transition: note,
  },
  /** May follow `key_revoked`: a key can be revoked after its row exists and before this event is recorded. */
  key_created: {
    ...recordOnly,
    schema: z.strictObject({ key_id: count, account_id: count, token_id: count.optional() }),
    transition: { ...ofKey, from: ['none', 'revoked'], to: 'created' },
  },
  key_revoked: {
    ...recordOnly,
    schema: z.strictObject({ key_id: count, token_id: count.optional() }),
    transition: { ...ofKey, from: ['none', 'created'], to: 'revoked' },
  },
} as const satisfies EventFamily;
