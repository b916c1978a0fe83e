import type pg from 'pg';
import type { EventData } from '../../../ledger/rules/event.ts';
import { grant, type Wish } from '../../../payments/rules/deliver-or-refund.ts';
import type { Refunding } from '../../../payments/rules/payment-progress.ts';
import { foldQuote, type PaymentState } from '../../../payments/rules/quote-state.ts';
import type { Address, Caip2, Hex } from '../../../base/values/primitives.ts';
import type { Chain } from '../../../payments/peers/chain/chain.ts';
import type { WantedTransfers } from '../../../payments/peers/chain/find-transfers.ts';
import type { RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { listStartedRefunds } from '../../../payments/store/refunds.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { readTransferHolders } from '../../../payments/store/claims.ts';
import { type Chains, type Refused, refused, rememberAnswers } from './final-transfers.ts';
import { recordRefund } from './record-refund.ts';
import { type By, noteSentRefund, readRefunding } from './send-refund.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

export type EndRefusal =
  /** No operator has begun to send it. */
  | 'not_started'
  /** Its transaction is in a block, so money may have moved: `detail` is that transaction. */
  | 'landed'
  /** Its transaction waits for a block, or its nonce is not spent in a final one: it may still land. */
  | 'pending'
  /** Its nonce is spent, and transfers of as much to the payer are on the chain that nothing has claimed. */
  | 'look_alike'
  /** Only operators can know: its nonce is not known. */
  | 'unproven'
  /** The same operator has said it before: another one has to say so too. */
  | 'said_before'
  | 'superseded'
  | 'chain_unavailable';

export type Ended =
  /** It is not under way any more, and stays due. */
  | { readonly kind: 'abandoned' }
  /** The first of two operators has said that it was not sent. */
  | { readonly kind: 'said' }
  | Refused<EndRefusal>;

/**
 * Ends a refund that was started and cannot land any more: its sender's nonce was spent by another transaction, or by its own that failed,
 * in a final block. If no nonce is known, or a transfer like it is on the chain, two operators have to say that it was not sent.
 * @param why how this operator knows that it was not sent; undefined: the chain alone is asked
 */
export async function endRefund(
  ledger: LedgerWriter,
  { why, ...by }: By & { readonly why?: string | undefined },
  chains: Chains,
): Promise<Ended> {
  const { state, version } = await readRefunding(ledger.pool, by);
  if (!state?.refunding) return refused('not_started');
  const proof = await findProof(ledger.pool, state, state.refunding, chains);
  const { operator } = by;
  let wish: Wish;
  if (proof.kind === 'proven') wish = { kind: 'abandon', data: { ...proof.data, operator } };
  else if ((proof.code === 'unproven' || proof.code === 'look_alike') && why !== undefined)
    wish = { kind: 'say_not_sent', data: { why, operator } };
  else return proof;
  const granted = grant(state, wish);
  if (granted.kind === 'refused')
    return refused(granted.why.kind === 'said_before' ? 'said_before' : 'not_started');
  const { events } = granted;
  const { outcome } = await ledger.lane.append({ stream: by.quoteDigest, expect: version, events });
  if (outcome !== 'ok') return refused('superseded');
  return { kind: events.some(({ type }) => type === 'refund_abandoned') ? 'abandoned' : 'said' };
}

type Proof =
  | {
      readonly kind: 'proven';
      readonly data: Pick<EventData<'refund_abandoned'>, 'proof' | 'block_number' | 'block_hash'>;
    }
  | Refused<EndRefusal>;

/** What the chain says of whether a started refund may still land. */
async function findProof(
  pool: pg.Pool,
  { payment }: PaymentState,
  { amount: value, to, transaction, sender, senderNonce, sinceBlock }: Refunding,
  chains: Chains,
): Promise<Proof> {
  if (transaction === undefined && senderNonce === undefined) return refused('unproven');
  const network = payment.network as Caip2;
  const chain = chains.get(network);
  if (!chain) return refused('chain_unavailable', network);
  const final = await chain.finalizedBlock();
  if (final.kind === 'unavailable') return unavailable(final);
  const { number, hash } = final.block;
  const wanted = { asset: payment.asset as Address, to: to as Address, value };
  const known =
    transaction && (await findByTransaction(pool, chain, transaction as Hex, { network, wanted, number }));
  if (known) return known;
  if (sender === undefined || senderNonce === undefined) return refused('unproven');
  const spent = await chain.readSpentNonces(sender as Address, hash);
  if (spent.kind === 'unavailable') return unavailable(spent);
  if (spent.value <= senderNonce)
    return refused('pending', `nonce ${senderNonce} of ${sender} is not spent in a final block`);
  if (sinceBlock === undefined) return refused('unproven');
  const like = await chain.findTransfers(wanted, sinceBlock, number);
  // a transaction that is too large to read never ends the refund; operators can
  if (like.kind === 'unavailable')
    return like.cause === 'range_too_long' ? refused('unproven') : unavailable(like);
  const others: Hex[] = [];
  for (const { transaction: other, logIndex } of like.value) {
    const holders = await readTransferHolders(pool, network, other);
    if (holders(logIndex) !== undefined) continue;
    const signed = await chain.readSignedBy(other);
    if (signed.kind === 'unavailable') return unavailable(signed);
    // a wallet sends a transaction again for a higher fee, under the same nonce
    if (signed.value?.sender === sender && signed.value.nonce === senderNonce)
      return refused('landed', other);
    others.push(other);
  }
  if (others.length > 0) return refused('look_alike', others.join(' '));
  return { kind: 'proven', data: { proof: 'nonce_spent', block_number: String(number), block_hash: hash } };
}

/** Undefined if it moved something else, or the node does not know it: the caller then looks for the transaction with its nonce. */
async function findByTransaction(
  pool: pg.Pool,
  chain: Chain,
  transaction: Hex,
  {
    network,
    wanted: { asset, to, value },
    number,
  }: { network: Caip2; wanted: WantedTransfers; number: bigint },
): Promise<Refused<EndRefusal> | undefined> {
  const mined = await chain.readTransfers(transaction, [asset]);
  switch (mined.kind) {
    case 'unavailable':
      return unavailable(mined);
    case 'mined': {
      if (mined.blockNumber > number) return refused('landed', transaction);
      const holders = await readTransferHolders(pool, network, transaction);
      const isIt = mined.transfers.some(
        (one) => one.to === to && one.value === value && holders(one.logIndex) === undefined,
      );
      return isIt ? refused('landed', transaction) : undefined;
    }
    case 'reverted':
      // an account's transaction has spent its nonce; anyone can send a Safe's signed transaction again
      return mined.blockNumber <= number ? undefined : refused('pending', transaction);
    case 'pending':
      return refused('pending', transaction);
    case 'absent':
      return undefined;
  }
}

function unavailable({ cause }: RpcUnavailable): Refused<EndRefusal> {
  return refused('chain_unavailable', cause);
}

/** Looked at in one step. */
const mostAtOnce = 100;

/** How many steps were made: each begins where the one before has ended, so that refunds which wait for people delay no others. */
export interface FollowedSteps {
  count: number;
}

/**
 * Ends the started refunds whose end the chain shows: records the final transaction that a wallet sent, or that spent its nonce,
 * and abandons refunds that can no longer land, in the name of the operator who started each. It leaves the rest to operators.
 */
export async function followRefunds(
  { pool, lane }: LedgerWriter,
  chains: Chains,
  steps: FollowedSteps = { count: 0 },
): Promise<void> {
  const ledger = { pool, lane };
  const once = rememberAnswers(chains);
  const started = await listStartedRefunds(pool);
  const first = (steps.count++ * mostAtOnce) % Math.max(1, started.length);
  const turned = [...started.slice(first), ...started.slice(0, first)];
  for (const stream of turned.slice(0, mostAtOnce)) {
    const { payment: known } = foldQuote((await readStream(pool, stream)).events);
    if (!known?.refunding) continue;
    const { operator, transaction, senderNonce } = known.refunding;
    const by = { quoteDigest: stream as Hex, paymentNonce: known.payment.nonce as Hex, operator };
    // the node may not have known it when it was named
    if (transaction !== undefined && senderNonce === undefined)
      await noteSentRefund(ledger, { ...by, transaction: transaction as Hex }, once);
    const ended = await endRefund(ledger, by, once);
    if (ended.kind === 'refused' && ended.code === 'landed')
      await recordRefund(ledger, { ...by, transaction: ended.detail as Hex, isGoodwill: false }, once);
  }
}
