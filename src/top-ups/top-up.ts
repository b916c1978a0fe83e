import type { EventData, LedgerEvent } from '../domain/events/event.ts';
import type { Address } from '../domain/values/primitives.ts';
import type { CreditCommand } from '../store/append-batch.ts';
import { findAccount } from '../store/credit.ts';
import type { LedgerDatabase } from '../store/database.ts';
import { accountNameOf } from '../store/identity.ts';
import { findCreditRequest } from '../store/top-ups.ts';
import { accountStream, findCreditAccount } from '../credit/credit.ts';
import type { Identity } from '../identity/context.ts';
import { openUser } from '../identity/sessions.ts';
import { openWalletUser } from '../identity/wallet-user.ts';

interface Ledger extends Pick<Identity, 'pool' | 'lane' | 'log'> {
  readonly db: LedgerDatabase;
}

/** A paid call that buys credit: what was paid for it, by whom. */
export type PaidTopUp = Omit<EventData<'credit_topped_up'>, 'account_id' | 'amount_micros'>;

/** What a top-up has brought its account. */
export interface ToppedUp {
  readonly account: string;
  readonly creditedMicros: bigint;
  /** What the account could spend then. */
  readonly balanceMicros: bigint;
}

/**
 * Credits the account of the payer's wallet with what was paid, once for each call: asked again, also by others, it tells what
 * was done. The account is the one that signing in with the wallet leads to. Undefined where it would have more than can be
 * counted, or where what was given was taken back: that is owed back, and not given again.
 */
export async function topUp(
  ledger: Ledger,
  paid: PaidTopUp,
  amountMicros: bigint,
): Promise<ToppedUp | undefined> {
  // a wallet can have come to another user since
  const done = await findDone(ledger, paid.call_id);
  if (done) return (await isTakenBack(ledger, paid.call_id)) ? undefined : done;
  const userId = await openWalletUser(ledger, paid.payer as Address);
  const account = accountNameOf(userId);
  const accountId = (await findCreditAccount(ledger, account)) ?? (await openUser(ledger, userId));
  const data = { ...paid, account_id: accountId, amount_micros: String(amountMicros) };
  const command: CreditCommand = {
    stream: accountStream(accountId),
    events: [{ type: 'credit_topped_up', data }],
    credit: { op: 'top_up', accountId, amountMicros, requestId: nameOf(paid.call_id) },
  };
  const outcome = await ledger.lane.appendCredit(command, { urgent: true });
  if (outcome.outcome !== 'ok') return findDone(ledger, paid.call_id);
  return {
    account,
    creditedMicros: amountMicros,
    balanceMicros: BigInt(outcome.detail.available ?? 0),
  };
}

/**
 * Takes the credit of a call back whose payment did not last, as far as it is there; once, and nothing where there is none.
 * What was spent already is missing, and the ledger and the log say so.
 */
export async function takeBackTopUp(
  ledger: Ledger,
  of: Pick<PaidTopUp, 'call_id' | 'quote_digest'>,
): Promise<void> {
  const given = await findCreditRequest(ledger.pool, nameOf(of.call_id));
  if (!given || (await isTakenBack(ledger, of.call_id))) return;
  const { accountId, amountMicros } = given;
  const balance = BigInt((await findAccount(ledger.db, { accountId }))?.balanceMicros ?? 0);
  const taken = balance < amountMicros ? balance : amountMicros;
  const missing = amountMicros - taken;
  const event: LedgerEvent = {
    type: 'credit_reversed',
    data: { ...of, account_id: accountId, amount_micros: String(taken), missing_micros: String(missing) },
  };
  const credit = {
    op: 'expire',
    accountId,
    amountMicros: taken,
    requestId: takenBackName(of.call_id),
  } as const;
  const command: CreditCommand = { stream: accountStream(accountId), events: [event], credit };
  const { outcome, ...told } = await ledger.lane.appendCredit(command, { urgent: true });
  // its owner has spent some of it this instant
  if ('code' in told && told.code === 'gone') return takeBackTopUp(ledger, of);
  if (outcome === 'ok')
    ledger.log.error(
      { ...of, account_id: accountId, taken_micros: String(taken), missing_micros: String(missing) },
      'credit was taken back: its payment did not last',
    );
}

async function findDone({ pool, db }: Ledger, callId: number): Promise<ToppedUp | undefined> {
  const done = await findCreditRequest(pool, nameOf(callId));
  const account = done && (await findAccount(db, done));
  return (
    account && { account: account.name, creditedMicros: done.amountMicros, balanceMicros: done.balanceMicros }
  );
}

/** Whether the account has the credit of a call: it was given, and not taken back. */
export async function hasToppedUp({ pool }: Pick<Ledger, 'pool'>, callId: number): Promise<boolean> {
  const given = await findCreditRequest(pool, nameOf(callId));
  return given !== undefined && !(await isTakenBack({ pool }, callId));
}

async function isTakenBack({ pool }: Pick<Ledger, 'pool'>, callId: number): Promise<boolean> {
  return (await findCreditRequest(pool, takenBackName(callId))) !== undefined;
}

function takenBackName(callId: number): string {
  return `take_back:${callId}`;
}

/** No operator can ask for a move of credit under such a name. */
function nameOf(callId: number): string {
  return `top_up:${callId}`;
}
