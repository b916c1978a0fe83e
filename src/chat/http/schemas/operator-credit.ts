import { z } from 'zod';
import { apiKeyNamePattern } from '../../../accounts/rules/api-key.ts';
import { modelNamePattern } from '../../../ledger/rules/fields.ts';
import { accountNamePattern } from '../../../base/values/price.ts';
import {
  credit,
  keyTerms,
  requestedAmount,
  requestedBudget,
  requestedCredit,
} from '../../../accounts/http/schemas/budget.ts';
import { limitOf } from '../../../accounts/http/schemas/list-cursor.ts';
import { time } from '../../../base/http/values.ts';

const id = z.int().min(1);
export const keyId = id.meta({ description: 'The id of the key. It is not secret.', examples: [7] });
export const accountName = z
  .string()
  .regex(accountNamePattern)
  .meta({ description: 'The account that the keys spend from.', examples: ['alice'] });

const limit = limitOf(1_000, 100, 'The most items of a page.');
const after = (name: string) =>
  z.coerce.number().int().min(0).default(0).describe(`The last \`${name}\` of the previous page.`);

export const keysQuery = z.strictObject({
  account: accountName.optional().describe('Only the keys of this account.'),
  after: after('key_id'),
  limit,
});

export const accountsQuery = z.strictObject({ after: after('account_id'), limit });

export const listedKey = z
  .strictObject({
    key_id: keyId,
    account: accountName,
    name: z.string(),
    ...keyTerms,
    created_at: time,
    expires_at: time.nullable(),
    revoked_at: time.nullable(),
    last_used_at: time.nullable().describe('With a precision of one minute.'),
  })
  .describe('An API key without its secret.');
export type ListedKeyJson = z.infer<typeof listedKey>;

export const listedKeys = z
  .strictObject({ keys: z.array(listedKey) })
  .describe('Keys of all accounts, oldest first, expired and revoked keys included.');

export const keyRequest = z
  .strictObject({
    account: accountName.describe('The account is created if it does not exist.'),
    name: z
      .string()
      .regex(apiKeyNamePattern)
      .default('default')
      .meta({ description: 'A name for its owner.', examples: ['my bot'] }),
    models: z
      .array(z.string().regex(modelNamePattern))
      .min(1)
      .max(100)
      .optional()
      .describe('The models that the key may use, whether they are served or not; all by default.'),
    cap: requestedCredit.optional().meta({
      description: 'The most that the key may spend in total, in the currency.',
      examples: ['5.00'],
    }),
    budget: requestedBudget.optional(),
    days: z
      .int()
      .min(1)
      .max(3_650)
      .optional()
      .meta({
        description: 'The days until the key expires; by default it does not expire.',
        examples: [30],
      }),
  })
  .describe('The key to create.');

export const issuedKey = z
  .strictObject({
    key_id: keyId,
    account: accountName,
    name: z.string(),
    key: z.string().describe('The secret. It is not shown again.'),
  })
  .describe('A new key.');
export type IssuedKeyJson = z.infer<typeof issuedKey>;

export const revokedKey = z.strictObject({ key_id: keyId, status: z.literal('revoked') });

export const account = z
  .strictObject({
    account_id: id,
    account: accountName,
    balance: credit.describe('The credit that can be spent now.'),
    held: credit.describe('The credit held for open completions.'),
    total_used: credit.describe('The cost of all completions so far.'),
  })
  .describe('A credit account.');
export type AccountJson = z.infer<typeof account>;

export const accounts = z
  .strictObject({ accounts: z.array(account) })
  .describe('All accounts, oldest first.');

export const grantRequest = z
  .strictObject({
    amount: requestedAmount,
  })
  .describe('The credit to grant.');

export const granted = z
  .strictObject({ account: accountName, balance: credit })
  .describe('The balance after the grant.');
