import { z } from 'zod';

/** What can stand in the ledger about people and their sessions: ids and machine words, never an address of any kind. */
const reason = z.string().regex(/^[a-z0-9_]{1,100}$/);
const provider = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);

const signInMethods = ['password', 'provider', 'wallet'] as const;
/** How somebody shows who they are. */
export type SignInMethod = (typeof signInMethods)[number];

const by = { method: z.enum(signInMethods), provider: provider.optional() };

/** Why a session came to its end: `ended` where its owner ended it, or all of theirs. */
export const sessionEndings = ['ended', 'expired'] as const;

const session = { session_id: z.uuid(), user_id: z.uuid() };

export const identityEventSchemas = {
  user_created: z.strictObject({ user_id: z.uuid() }),
  session_started: z.strictObject({ ...session, ...by, expires_at: z.int().min(0) }),
  session_ended: z.strictObject({ ...session, reason: z.enum(sessionEndings) }),
  sign_in_refused: z.strictObject({ ...by, reason }),
} as const;
