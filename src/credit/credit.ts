import type pg from 'pg';
import { accountNamePattern } from '../domain/credit/price.ts';
import { findAccountId, nextAccountId } from '../store/credit.ts';
import type { Lane } from '../store/lane.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly lane: Lane;
}

/** The account of this name, as anybody may write it; undefined where there is none. */
export async function findCreditAccount(
  { pool }: Pick<Ledger, 'pool'>,
  name: string,
): Promise<number | undefined> {
  return accountNamePattern.test(name) ? findAccountId(pool, name) : undefined;
}

/**
 * The account of this name, opened where there is none. It comes into being in the transaction of its event: of two that
 * open it at once one finds the other's, and no crash leaves one without the other.
 * Throws RangeError for a name that is none.
 */
export async function openCreditAccount({ pool, lane }: Ledger, name: string): Promise<number> {
  if (!accountNamePattern.test(name)) throw new RangeError('this is no name of an account');
  const known = await findAccountId(pool, name);
  if (known !== undefined) return known;
  const accountId = await nextAccountId(pool);
  const { outcome } = await lane.appendCredit({
    stream: accountStream(accountId),
    events: [{ type: 'credit_account_opened', data: { account_id: accountId, name } }],
    credit: { op: 'open', accountId, name },
  });
  if (outcome === 'ok') return accountId;
  const first = await findAccountId(pool, name);
  if (first === undefined) throw new Error('the account was refused, and is not there');
  return first;
}

interface AskedMove {
  /** The operator's token that asked for it. */
  readonly tokenId?: number | undefined;
  /** Under one name it is done once, and its answer is given again. */
  readonly requestId?: string | undefined;
}

/**
 * What the account can spend then, in micros; undefined where it cannot be done, and nothing was; `request_id_taken` where
 * something else was done under that name.
 */
type Moved = bigint | undefined | 'request_id_taken';

/**
 * Gives credit to an account. It cannot be done where there is no such account, or where it would have more than can be
 * counted. Throws RangeError for an amount that is not above zero, or beyond 2^53.
 */
export function grantCredit(
  ledger: Pick<Ledger, 'lane'>,
  accountId: number,
  amountMicros: bigint,
  asked: AskedMove = {},
): Promise<Moved> {
  return move(ledger, 'grant', accountId, amountMicros, asked);
}

/** Takes credit away that is not held. It cannot be done where the account has less. Throws like {@link grantCredit}. */
export function expireCredit(
  ledger: Pick<Ledger, 'lane'>,
  accountId: number,
  amountMicros: bigint,
  asked: AskedMove = {},
): Promise<Moved> {
  return move(ledger, 'expire', accountId, amountMicros, asked);
}

async function move(
  { lane }: Pick<Ledger, 'lane'>,
  op: 'grant' | 'expire',
  accountId: number,
  amountMicros: bigint,
  { tokenId, requestId }: AskedMove,
): Promise<Moved> {
  if (amountMicros <= 0n) throw new RangeError('an amount is above zero');
  const moved = await lane.appendCredit({
    stream: accountStream(accountId),
    events: [
      {
        type: op === 'grant' ? 'credit_granted' : 'credit_expired',
        data: {
          account_id: accountId,
          amount_micros: String(amountMicros),
          ...(tokenId === undefined ? {} : { token_id: tokenId }),
        },
      },
    ],
    credit: { op, accountId, amountMicros, requestId },
  });
  const { available } = moved.detail;
  if (moved.outcome === 'ok' || moved.code === 'repeated') return BigInt(available ?? 0);
  return moved.code === 'request_id_taken' ? moved.code : undefined;
}

/** Where the story of an account stands. */
export function accountStream(accountId: number): string {
  return `account:${accountId}`;
}
