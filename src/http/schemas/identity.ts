import { z } from 'zod';
import { apiKeyNamePattern } from '../../domain/identity/api-key.ts';
import { parseCredit } from '../../domain/credit/price.ts';
import { credit } from './credit.ts';
import { time } from './values.ts';

export const siweTerms = z
  .strictObject({
    nonce: z.string().regex(/^[0-9a-f]{32}$/),
    domain: z.string(),
    uri: z.url(),
    chain_id: z.int().min(1),
    expires_in_secs: z.int().min(1),
  })
  .meta({ description: 'What a message must say to be one for this gateway.' });
export type SiweTermsJson = z.infer<typeof siweTerms>;

export const siweVerify = z.object({
  address: z.string().max(100).meta({ description: 'The same as in the message.' }),
  signature: z.string().max(4_098).meta({ description: "Hex: a key's 65 bytes, or what a contract wants." }),
  message: z.string().max(8_192).meta({ description: 'As it was signed (EIP-4361).' }),
});

export const signedIn = z
  .strictObject({
    user: z.strictObject({ id: z.uuid(), name: z.string(), created_at: time }),
    session: z.strictObject({ expires_at: time }),
  })
  .meta({ description: 'Who signed in. The session itself is in the cookie.' });
export type SignedInJson = z.infer<typeof signedIn>;

const keyName = z.string().regex(apiKeyNamePattern).meta({ description: 'One line that can be shown.' });

export const keyRequest = z.strictObject({
  name: keyName,
  models: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(100)
    .optional()
    .meta({ description: 'Those it may use; left out: all.' }),
  cap: z
    .string()
    .refine((text) => parseCredit(text) !== undefined)
    .optional()
    .meta({ description: 'What it may spend in all, as a decimal string of the currency.' }),
  expires_at: z.iso.datetime({ offset: true }).optional(),
});

export const madeKey = z
  .strictObject({
    id: z.int().min(1),
    name: z.string(),
    key: z.string().meta({ description: 'Shown this once.', examples: ['sk-net-…'] }),
  })
  .meta({ description: 'A new key.' });
export type MadeKeyJson = z.infer<typeof madeKey>;

export const userKey = z
  .strictObject({
    id: z.int().min(1),
    name: z.string(),
    prefix: z.string().meta({ description: 'How the key begins.', examples: ['sk-net-Ab3xYz'] }),
    models: z.array(z.string()).nullable(),
    cap: credit.nullable(),
    spent: credit,
    created_at: time,
    expires_at: time.nullable(),
    revoked_at: time.nullable(),
    last_used_at: time.nullable(),
  })
  .meta({ description: 'A key of the user.' });
export type UserKeyJson = z.infer<typeof userKey>;

export const userKeys = z
  .strictObject({ keys: z.array(userKey) })
  .meta({ description: 'Oldest first; behind them the last hundred that were revoked, the latest first.' });

export const revokedKey = z
  .strictObject({ id: z.int().min(1), status: z.literal('revoked') })
  .meta({ description: 'It holds no more, in any process.' });

/** What better-auth answers. */
export const authAnswer = z
  .looseObject({})
  .nullable()
  .meta({ description: "better-auth's own JSON: a session, a user, where to go on, or null." });
export const authRefusal = z
  .looseObject({ message: z.string().optional(), code: z.string().optional() })
  .meta({ description: "better-auth's own refusal, or ours with `error` and `code`." });
