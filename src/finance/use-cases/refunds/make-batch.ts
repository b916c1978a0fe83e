import type pg from 'pg';
import { type BatchedRefund, type RefundBatch, transferCall } from '../../rules/refund-batch.ts';
import type { Address, Caip2, Hex } from '../../../base/values/primitives.ts';
import type { Attested } from '../attestations/attested.ts';
import { type Chains, rememberAnswers } from './final-transfers.ts';
import { findUnlistedRefunds, listRefundsDue, type ListedRefund } from './list-refunds-due.ts';
import { type DueRefund, findDue, type SendRefusal, startDue } from './send-refund.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

const rowsAtOnce = 1_000;

export interface BatchOrder {
  readonly network: Caip2;
  /** The most refunds in it: a block has room for this many transfers. */
  readonly max: number;
}

/** Why a refund that is due is not in a batch, by its quote. */
export interface LeftOut {
  readonly quoteDigest: string;
  readonly code: SendRefusal;
  /** For `under_way`: the operator who sends it. */
  readonly detail?: string | undefined;
}

/** A batch of which nothing is on record yet, or the rest of one that was started before, with its nonces. */
export interface BatchPlan {
  readonly kind: 'planned';
  readonly asOfSeq: number;
  readonly startedBefore: readonly BatchedRefund[];
  readonly refunds: readonly (DueRefund & { readonly row: ListedRefund })[];
  readonly leftOut: readonly LeftOut[];
  /** Further refunds are due on the network. */
  readonly isCut: boolean;
}

export type PlanAnswer =
  | BatchPlan
  /** The read models contradict the events of these payments: `tollbook verify` comes first. */
  | { readonly kind: 'contradicted'; readonly seqs: readonly number[] }
  /** These events of payments are not those that the log has sealed. */
  | { readonly kind: 'changed'; readonly seqs: readonly number[] }
  /** The chain does not show the payments of these quotes, whatever the events say. */
  | { readonly kind: 'not_shown'; readonly quotes: readonly string[] }
  | { readonly kind: 'unavailable'; readonly cause: string };

/**
 * The refunds that are due on a network, of payments in final blocks, the oldest first; or those that were started for the nonces of
 * this sender and have no transaction yet, whose file may be lost: sent under the same nonces, none is sent twice. It records nothing.
 */
export async function planBatch(
  pool: pg.Pool,
  { network, max }: BatchOrder,
  chains: Chains,
  by: SentBy = { isOneTransaction: false },
  since?: Attested,
): Promise<PlanAnswer> {
  const startedBefore: BatchedRefund[] = [];
  const once = rememberAnswers(chains);
  const refunds: BatchPlan['refunds'][number][] = [];
  const leftOut: LeftOut[] = [];
  const notShown: string[] = [];
  let isCut = false;
  let asOfSeq = 0;
  const unlisted = await findUnlistedRefunds(pool, since);
  if (unlisted.length > 0) return { kind: 'contradicted', seqs: unlisted };
  for (let after: number | undefined = 0; after !== undefined && !isCut;) {
    const page = await listRefundsDue(pool, after, rowsAtOnce);
    if (page.changed.length > 0) return { kind: 'changed', seqs: page.changed };
    if (page.contradicted.length > 0) return { kind: 'contradicted', seqs: page.contradicted };
    asOfSeq = page.asOfSeq;
    for (const row of page.rows.filter((one) => one.network === network)) {
      if (isOfBatch(row.under_way, by)) {
        startedBefore.push(refundIn(row, row.under_way?.sender_nonce ?? undefined));
        continue;
      }
      const [quoteDigest, paymentNonce] = [row.quote_digest as Hex, row.payment_nonce as Hex];
      if (refunds.length === max) {
        isCut ||= row.under_way === null && row.block_number !== null;
        continue;
      }
      const due = await findDue(pool, { quoteDigest, paymentNonce }, once, since);
      if (due.kind === 'due') refunds.push({ ...due, row });
      else if (due.code === 'chain_unavailable')
        return { kind: 'unavailable', cause: due.detail ?? 'no RPC is known' };
      else if (due.code === 'not_shown') notShown.push(quoteDigest);
      else leftOut.push({ quoteDigest, code: due.code, detail: due.detail });
    }
    after = page.listed.length < rowsAtOnce ? undefined : page.listed.at(-1);
  }
  if (notShown.length > 0) return { kind: 'not_shown', quotes: notShown };
  startedBefore.sort((a, b) => (a.sender_nonce ?? 0) - (b.sender_nonce ?? 0));
  const plan = { kind: 'planned', asOfSeq, startedBefore } as const;
  return startedBefore.length > 0
    ? { ...plan, refunds: [], leftOut: [], isCut: refunds.length > 0 }
    : { ...plan, refunds, leftOut, isCut };
}

function isOfBatch(
  started: ListedRefund['under_way'],
  { sender, firstNonce, isOneTransaction }: SentBy,
): boolean {
  const nonce = started?.sender_nonce;
  if (nonce == null || firstNonce === undefined || started?.sender !== sender) return false;
  return started?.transaction === null && (isOneTransaction ? nonce === firstNonce : nonce >= firstNonce);
}

/** The details of sending that are known before a batch is sent. */
interface SentBy {
  readonly sender?: Address | undefined;
  /** The sender's nonce for the first refund: for all of them if one transaction sends them, else each has the next one. */
  readonly firstNonce?: number | undefined;
  readonly isOneTransaction: boolean;
}

export interface BatchSender extends SentBy {
  readonly operator: string;
}

/** Starts each refund of a plan, so that no worker delivers its call and no operator sends it again. The batch may be sent after that. */
export async function startBatch(
  ledger: LedgerWriter,
  { asOfSeq, startedBefore, refunds: planned }: BatchPlan,
  network: Caip2,
  { operator, sender, firstNonce, isOneTransaction }: BatchSender,
): Promise<{ readonly batch: RefundBatch; readonly leftOut: readonly LeftOut[] }> {
  const refunds = [...startedBefore];
  const leftOut: LeftOut[] = [];
  for (const { row, ...due } of planned) {
    const senderNonce =
      firstNonce === undefined ? undefined : firstNonce + (isOneTransaction ? 0 : refunds.length);
    const started = await startDue(ledger, due, { operator, sender, senderNonce });
    if (started.kind === 'started') refunds.push(refundIn(row, senderNonce));
    else leftOut.push({ ...due.of, code: started.code, detail: started.detail });
  }
  const by = sender === undefined ? {} : { sender };
  return { batch: { version: 1, network, as_of_seq: asOfSeq, ...by, refunds }, leftOut };
}

function refundIn(row: ListedRefund, senderNonce: number | undefined): BatchedRefund {
  const { symbol, decimals, amount } = row;
  const [asset, to] = [row.asset as Hex, row.payer as Hex];
  const named = { quote_digest: row.quote_digest as Hex, payment_nonce: row.payment_nonce as Hex };
  const nonce = senderNonce === undefined ? {} : { sender_nonce: senderNonce };
  const call = transferCall(asset, to, BigInt(amount));
  return { ...named, asset, symbol, decimals, to, amount, ...nonce, call };
}
