import { apiKeyHash } from '../accounts/rules/api-key.ts';
import { issueApiKey } from '../accounts/use-cases/api-keys.ts';
import { grantCredit, openCreditAccount } from '../accounts/use-cases/credit/credit.ts';
import { findApiKey } from '../accounts/store/api-keys.ts';
import { findAccount } from '../accounts/store/credit.ts';
import type { LedgerDatabase } from '../ledger/store/database.ts';
import type { Lane } from '../ledger/store/lane.ts';
import type pg from 'pg';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  readonly lane: Lane;
}

/** A key of each kind that a client can meet: one with credit, one without, one whose time is over. */
export interface DemoKeys {
  readonly api_key_funded: string;
  readonly api_key_empty: string;
  readonly api_key_expired: string;
}

type EarlierKeys = { readonly [name in keyof DemoKeys]?: string | undefined };

const fundedMicros = 1_000_000_000n;
/** Below it more is granted, so that the funded key stays funded. */
const leastMicros = fundedMicros / 10n;
const longAgo = new Date('2020-01-01T00:00:00Z');

/** The keys of an earlier start if this ledger knows them, new ones else; the funded one has credit again. */
export async function demoKeys(ledger: Ledger, earlier: EarlierKeys = {}): Promise<DemoKeys> {
  const funded = await openCreditAccount(ledger, 'devnet-funded');
  const empty = await openCreditAccount(ledger, 'devnet-empty');
  const account = await findAccount(ledger.db, { accountId: funded });
  if ((account?.balanceMicros ?? 0) < leastMicros) await grantCredit(ledger, funded, fundedMicros);
  const keep = async (key: string | undefined, accountId: number, expiresAt?: Date): Promise<string> => {
    if (key !== undefined && (await isKnown(ledger, key))) return key;
    return (await issueApiKey(ledger, { accountId, name: 'devnet', expiresAt })).key;
  };
  return {
    api_key_funded: await keep(earlier.api_key_funded, funded),
    api_key_empty: await keep(earlier.api_key_empty, empty),
    api_key_expired: await keep(earlier.api_key_expired, funded, longAgo),
  };
}

async function isKnown({ db }: Ledger, key: string): Promise<boolean> {
  const found = await findApiKey(db, apiKeyHash(key));
  return found !== undefined && found.revokedAt === undefined;
}
