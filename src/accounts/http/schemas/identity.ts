import { z } from 'zod';
import { apiKeyNamePattern } from '../../rules/api-key.ts';
import { parseCredit } from '../../../base/values/price.ts';
import { credit, keyBudget, requestedBudget } from './budget.ts';
import { time } from '../../../base/http/values.ts';

export const siweTerms = z
  .strictObject({
    nonce: z.string().regex(/^[0-9a-f]{32}$/),
    domain: z.string(),
    uri: z.url(),
    chain_id: z.int().min(1),
    expires_in_secs: z.int().min(1),
  })
  .describe('The values that a message for this gateway must contain.');
export type SiweTermsJson = z.infer<typeof siweTerms>;

export const siweVerify = z.object({
  address: z.string().max(100).describe('The same as in the message.'),
  signature: z
    .string()
    .max(4_098)
    .describe(
      "Hex: 65 bytes of an account with a private key, or the bytes that the account's contract requires.",
    ),
  message: z.string().max(8_192).describe('The signed message (EIP-4361), unchanged.'),
});

export const walletTerms = z
  .strictObject({
    ...siweTerms.shape,
    nonce: z.string().regex(/^[0-9a-f]{96}$/),
    statement: z.string(),
  })
  .describe('The values that a message must contain which adds a wallet, word for word.');
export type WalletTermsJson = z.infer<typeof walletTerms>;

export const linkedWallet = z
  .strictObject({
    address: z.string(),
    contract_on: z
      .int()
      .min(1)
      .nullable()
      .describe(
        'The chain of a contract account, whose address may have another owner elsewhere; null for a key.',
      ),
  })
  .describe('A wallet with which the user can sign in.');
export type LinkedWalletJson = z.infer<typeof linkedWallet>;

export const linkedWallets = z
  .strictObject({ wallets: z.array(z.strictObject({ ...linkedWallet.shape, added_at: time })) })
  .describe('Oldest first.');

export const removedWallet = z
  .strictObject({ address: z.string(), status: z.literal('removed') })
  .describe('The wallet cannot sign in to this account any more.');

export const signedIn = z
  .strictObject({
    user: z.strictObject({ id: z.uuid(), name: z.string(), created_at: time }),
    session: z.strictObject({ expires_at: time }),
  })
  .describe('The user who signed in. The session is in the cookie.');
export type SignedInJson = z.infer<typeof signedIn>;

const keyName = z.string().regex(apiKeyNamePattern).describe('One line of printable characters.');

export const keyRequest = z.strictObject({
  name: keyName,
  models: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(100)
    .optional()
    .describe('The models that the key may use; all by default.'),
  cap: z
    .string()
    .refine((text) => parseCredit(text) !== undefined)
    .optional()
    .describe('The most that the key may spend in total, as a decimal string of the currency.'),
  budget: requestedBudget.optional(),
  expires_at: z.iso.datetime({ offset: true }).optional(),
});

export const madeKey = z
  .strictObject({
    id: z.int().min(1),
    name: z.string(),
    key: z.string().meta({ description: 'The secret. It is not shown again.', examples: ['sk-net-…'] }),
  })
  .describe('A new key.');
export type MadeKeyJson = z.infer<typeof madeKey>;

export const userKey = z
  .strictObject({
    id: z.int().min(1),
    name: z.string(),
    models: z.array(z.string()).nullable(),
    cap: credit.nullable(),
    spent: credit,
    budget: keyBudget.nullable(),
    created_at: time,
    expires_at: time.nullable(),
    revoked_at: time.nullable(),
    last_used_at: time.nullable(),
    made_by: z.enum(['user', 'operator']),
  })
  .describe('A key of the user.');
export type UserKeyJson = z.infer<typeof userKey>;

export const userKeys = z
  .strictObject({ keys: z.array(userKey) })
  .describe('Oldest first; then the hundred keys that were revoked last, latest first.');

export const revokedKey = z
  .strictObject({ id: z.int().min(1), status: z.literal('revoked') })
  .describe('The key is refused by every process.');

export const revokedKeys = z
  .strictObject({ revoked: z.int().min(0) })
  .describe('How many keys were revoked. Every process refuses them.');
export type RevokedKeysJson = z.infer<typeof revokedKeys>;

export const alertWebhookRequest = z.strictObject({
  url: z
    .url()
    .max(2_000)
    .meta({
      description: 'https, with a host on the public internet.',
      examples: ['https://hooks.example/budgets'],
    }),
});

export const alertWebhook = z
  .strictObject({ url: z.string().nullable() })
  .describe("Where messages about the budgets of the user's keys are sent; null: only by mail.");
export type AlertWebhookJson = z.infer<typeof alertWebhook>;

export const newAlertWebhook = z
  .strictObject({
    url: z.string(),
    secret: z.string().meta({
      description: 'Signs the messages as Standard Webhooks does. It is not shown again.',
      examples: ['whsec_…'],
    }),
  })
  .describe('The webhook with its new secret.');

/** The answers of better-auth. */
export const authAnswer = z
  .union([z.looseObject({}), z.array(z.looseObject({})), z.null()])
  .describe('The JSON of better-auth: a session, a user, the next URL, a list of accounts, or null.');
export const authRefusal = z
  .looseObject({ message: z.string().optional(), code: z.string().optional() })
  .describe("A refusal of better-auth, or the gateway's with `error` and `code`.");
