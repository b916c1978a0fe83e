import type pg from 'pg';
import type { EventData } from '../domain/events/event.ts';
import { grant, type Wish } from '../domain/payments/deliver-or-refund.ts';
import type { Refunding } from '../domain/payments/payment-progress.ts';
import type { PaymentState } from '../domain/payments/quote-state.ts';
import type { Address, Caip2, Hex } from '../domain/values/primitives.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { Block } from '../peers/chain/blocks.ts';
import type { WantedTransfers } from '../peers/chain/find-transfers.ts';
import type { RpcUnavailable } from '../peers/rpc/json-rpc.ts';
import { readTransferHolders } from '../store/streams.ts';
import { type Chains, type Refused, refused } from './final-transfers.ts';
import { type By, type Ledger, readRefunding } from './send-refund.ts';

export type EndRefusal =
  /** No operator has begun to send it. */
  | 'not_started'
  /** Its transaction is in a block, so money may have moved. */
  | 'landed'
  /** Its transaction waits for a block, or its nonce is not spent in a final one: it may still land. */
  | 'pending'
  /** Its nonce is spent, and a transfer of as much to the payer is on the chain that nothing has claimed. */
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
 * in a final block. Where no nonce is known, or a transfer like it is on the chain, two operators have to say that it was not sent.
 * @param why how this operator knows that it was not sent; undefined: the chain alone is asked
 */
export async function endRefund(
  ledger: Ledger,
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
  refunding: Refunding,
  chains: Chains,
): Promise<Proof> {
  const { transaction, sender, senderNonce } = refunding;
  if (transaction === undefined && senderNonce === undefined) return refused('unproven');
  const network = payment.network as Caip2;
  const chain = chains.get(network);
  if (!chain) return refused('chain_unavailable', network);
  const final = await chain.finalizedBlock();
  if (final.kind === 'unavailable') return unavailable(final);
  const wanted = {
    asset: payment.asset as Address,
    to: refunding.to as Address,
    value: refunding.amount,
  };
  const known = transaction && (await findByTransaction(chain, transaction as Hex, wanted, final.block));
  if (known) return known;
  if (sender === undefined || senderNonce === undefined) return refused('unproven');
  const spent = await chain.readSpentNonces(sender as Address, final.block.hash);
  if (spent.kind === 'unavailable') return unavailable(spent);
  if (spent.value <= senderNonce)
    return refused('pending', `nonce ${senderNonce} of ${sender} is not spent in a final block`);
  if (refunding.sinceBlock === undefined) return refused('unproven');
  const like = await chain.findTransfers(wanted, refunding.sinceBlock, final.block.number);
  // what is too much to read never ends the refund by itself: operators can
  if (like.kind === 'unavailable')
    return like.cause === 'range_too_long' ? refused('unproven') : unavailable(like);
  for (const one of like.value) {
    const holders = await readTransferHolders(pool, network, one.transaction);
    if (holders(one.logIndex) === undefined) return refused('look_alike', one.transaction);
  }
  return spentBefore(final.block);
}

/** Undefined where it has moved something else, or the node knows nothing of it: what its nonce was spent by is to be seen. */
async function findByTransaction(
  chain: Chain,
  transaction: Hex,
  { asset, to, value }: WantedTransfers,
  final: Block,
): Promise<Proof | undefined> {
  const mined = await chain.readTransfers(transaction, [asset]);
  switch (mined.kind) {
    case 'unavailable':
      return unavailable(mined);
    case 'mined': {
      const isIt = mined.transfers.some((one) => one.asset === asset && one.to === to && one.value === value);
      return isIt || mined.blockNumber > final.number ? refused('landed', transaction) : undefined;
    }
    case 'reverted':
      // of an account it has spent the nonce; of a Safe anyone can send what its owners have signed again
      return mined.blockNumber <= final.number ? undefined : refused('pending', transaction);
    case 'pending':
      return refused('pending', transaction);
    case 'absent':
      return undefined;
  }
}

function spentBefore({ number, hash }: Block): Proof {
  return {
    kind: 'proven',
    data: { proof: 'nonce_spent', block_number: String(number), block_hash: hash },
  };
}

function unavailable({ cause }: RpcUnavailable): Refused<EndRefusal> {
  return refused('chain_unavailable', cause);
}
