import { accountNamePattern } from '../../../base/values/price.ts';
import { findAccountId, findAccountOpening, nextAccountId } from '../../store/credit.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

/** The account of this name, which need not be well formed; undefined if there is none. */
export async function findCreditAccount(
  { pool }: Pick<LedgerWriter, 'pool'>,
  name: string,
): Promise<number | undefined> {
  return accountNamePattern.test(name) ? findAccountId(pool, name) : undefined;
}

/**
 * The account of this name, opened and recorded when it is not. The account and its event are written in one transaction: of two
 * processes that open it simultaneously, one finds the other's account.
 * @throws RangeError for a name that is not well formed
 */
export async function openCreditAccount({ pool, lane }: LedgerWriter, name: string): Promise<number> {
  if (!accountNamePattern.test(name)) throw new RangeError('not a well-formed account name');
  const known = await findAccountOpening(pool, { name });
  if (known?.isRecorded) return known.accountId;
  const accountId = known?.accountId ?? (await nextAccountId(pool));
  const { outcome } = await lane.appendCredit({
    stream: accountStream(accountId),
    events: [{ type: 'credit_account_opened', data: { account_id: accountId, name } }],
    credit: { op: 'open', accountId, name },
  });
  if (outcome === 'ok') return accountId;
  const first = await findAccountOpening(pool, { name });
  if (first === undefined) throw new Error('the ledger refused to open the account, but it does not exist');
  // a user's, who signed in meanwhile
  return first.isRecorded ? first.accountId : openCreditAccount({ pool, lane }, name);
}

/** Records the opening of an account that is about to get its first credit; nothing if it is on record, or unknown. */
export async function recordOpening(ledger: LedgerWriter, accountId: number): Promise<void> {
  const known = await findAccountOpening(ledger.pool, { accountId });
  if (known?.isRecorded === false) await openCreditAccount(ledger, known.name);
}

interface MoveOptions {
  /** The operator's token that requested the move. */
  readonly tokenId?: number | undefined;
  /** Who moved it, and why, if a person did. */
  readonly by?: { readonly operator: string; readonly why: string } | undefined;
  /** Idempotency key: a repeated move is done once and has the same result. */
  readonly requestId?: string | undefined;
  /** The currency of the credit, if the process knows it. */
  readonly currency?: string | undefined;
}

export type MoveResult =
  /** `balanceMicros`: the amount that the account could spend after the move. */
  | { readonly kind: 'moved'; readonly balanceMicros: bigint }
  /** The account does not exist or does not allow the move; nothing was moved. */
  | { readonly kind: 'not_allowed' }
  /** The idempotency key belongs to another move; nothing was moved. */
  | { readonly kind: 'request_id_taken' };

/**
 * Gives credit to an account; not allowed when there is no such account, or it would hold 2^53 micros or more.
 * @throws RangeError for an amount that is not above zero, or beyond 2^53
 */
export async function grantCredit(
  ledger: LedgerWriter,
  accountId: number,
  amountMicros: bigint,
  options: MoveOptions = {},
): Promise<MoveResult> {
  if (amountMicros > 0n) await recordOpening(ledger, accountId);
  return move(ledger, 'grant', accountId, amountMicros, options);
}

/** Takes credit that is not held from an account; not allowed when the account has less. Throws like {@link grantCredit}. */
export function expireCredit(
  ledger: Pick<LedgerWriter, 'lane'>,
  accountId: number,
  amountMicros: bigint,
  options: MoveOptions = {},
): Promise<MoveResult> {
  return move(ledger, 'expire', accountId, amountMicros, options);
}

async function move(
  { lane }: Pick<LedgerWriter, 'lane'>,
  op: 'grant' | 'expire',
  accountId: number,
  amountMicros: bigint,
  { tokenId, by, requestId, currency }: MoveOptions,
): Promise<MoveResult> {
  if (amountMicros <= 0n) throw new RangeError('the amount must be above zero');
  const moved = await lane.appendCredit({
    stream: accountStream(accountId),
    events: [
      {
        type: op === 'grant' ? 'credit_granted' : 'credit_expired',
        data: {
          account_id: accountId,
          amount_micros: String(amountMicros),
          ...(tokenId === undefined ? {} : { token_id: tokenId }),
          ...by,
          ...(op === 'grant' && currency !== undefined && { currency }),
        },
      },
    ],
    credit: { op, accountId, amountMicros, requestId },
  });
  const { available } = moved.detail;
  if (moved.outcome === 'ok' || moved.code === 'repeated')
    return { kind: 'moved', balanceMicros: BigInt(available ?? 0) };
  return { kind: moved.code === 'request_id_taken' ? 'request_id_taken' : 'not_allowed' };
}

/** The stream of an account's events. */
export function accountStream(accountId: number): string {
  return `account:${accountId}`;
}
