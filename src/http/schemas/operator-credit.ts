import { z } from 'zod';
import { apiKeyNamePattern } from '../../domain/identity/api-key.ts';
import { modelNamePattern } from '../../domain/events/fields.ts';
import { accountNamePattern, parseCredit } from '../../domain/credit/price.ts';
import { credit } from './credit.ts';
import { time } from './values.ts';

const id = z.int().min(1);
export const keyId = id.meta({ description: 'The key, for whoever may not see it.', examples: [7] });
export const accountName = z
  .string()
  .regex(accountNamePattern)
  .meta({ description: 'The account that keys spend from.', examples: ['alice'] });
const prefix = z.string().meta({ description: 'How the key begins.', examples: ['sk-net-Ab3xYz'] });

const limit = z.coerce
  .number()
  .int()
  .min(1)
  .max(1_000)
  .default(100)
  .meta({ description: 'At most so many.' });
const after = (name: string) =>
  z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .meta({ description: `The last \`${name}\` of the page before.` });

export const keysQuery = z.strictObject({
  account: accountName.optional().meta({ description: 'Only the keys of this account.' }),
  after: after('key_id'),
  limit,
});

export const accountsQuery = z.strictObject({ after: after('account_id'), limit });

export const listedKey = z
  .strictObject({
    key_id: keyId,
    account: accountName,
    name: z.string(),
    prefix,
    models: z.array(z.string()).nullable().meta({ description: 'Those it may use; null: all.' }),
    cap: credit
      .nullable()
      .meta({ description: 'What it may spend in all; null: as much as the account has.' }),
    spent: credit.meta({ description: 'Of that, with what is held.' }),
    created_at: time,
    expires_at: time.nullable(),
    revoked_at: time.nullable(),
    last_used_at: time.nullable().meta({ description: 'To the minute.' }),
  })
  .meta({ description: 'An API key without the key.' });
export type ListedKeyJson = z.infer<typeof listedKey>;

export const listedKeys = z
  .strictObject({ keys: z.array(listedKey) })
  .meta({ description: 'Keys of all accounts, oldest first, those that ended too.' });

/** An amount that a client writes: the smallest number of digits is not asked for. */
const askedCredit = z.string().regex(/^(?:0|[1-9]\d{0,8})(?:\.\d{1,6})?$/);

export const keyRequest = z
  .strictObject({
    account: accountName.meta({ description: 'Opened where there is none of this name.' }),
    name: z
      .string()
      .regex(apiKeyNamePattern)
      .default('default')
      .meta({ description: 'What its owner calls it.', examples: ['my bot'] }),
    models: z
      .array(z.string().regex(modelNamePattern))
      .min(1)
      .max(100)
      .optional()
      .meta({ description: 'Those it may use, whether they are served yet or not; all where left out.' }),
    cap: askedCredit
      .optional()
      .meta({ description: 'What it may spend in all, in the currency.', examples: ['5.00'] }),
    days: z
      .int()
      .min(1)
      .max(3_650)
      .optional()
      .meta({ description: 'How long it holds; for ever where left out.', examples: [30] }),
  })
  .meta({ description: 'A key to be made.' });

export const issuedKey = z
  .strictObject({
    key_id: keyId,
    account: accountName,
    prefix,
    key: z.string().meta({ description: 'The key itself, shown this once.' }),
  })
  .meta({ description: 'A new key.' });
export type IssuedKeyJson = z.infer<typeof issuedKey>;

export const revokedKey = z.strictObject({ key_id: keyId, status: z.literal('revoked') });

export const account = z
  .strictObject({
    account_id: id,
    account: accountName,
    balance: credit.meta({ description: 'What can be spent now.' }),
    held: credit.meta({ description: 'Set aside for completions under way.' }),
    total_used: credit.meta({ description: 'What all completions have cost.' }),
  })
  .meta({ description: 'An account of credit.' });
export type AccountJson = z.infer<typeof account>;

export const accounts = z
  .strictObject({ accounts: z.array(account) })
  .meta({ description: 'All accounts, oldest first.' });

export const grantRequest = z
  .strictObject({
    amount: askedCredit
      .refine((text) => parseCredit(text) !== 0n, 'must be above 0')
      .meta({ description: 'In the currency, above 0.', examples: ['5.00'] }),
  })
  .meta({ description: 'Credit to be given.' });

export const granted = z
  .strictObject({ account: accountName, balance: credit })
  .meta({ description: 'What the account can spend now.' });
