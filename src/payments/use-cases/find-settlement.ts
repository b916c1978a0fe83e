import { expectedTransfer, type SignedPayment } from '../rules/payment.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { PaymentState } from '../rules/quote-state.ts';
import type { AuthorizationFound, Chain } from '../peers/chain/chain.ts';
import type { Proof, Settlement } from '../rules/settlement.ts';

/** What the chain says about a payment whose outcome is open. */
export type Finding =
  | { readonly kind: 'paid'; readonly transaction: Hex; readonly proof: Proof }
  /** It can never land: unused and out of time, or used up for something else, in a block that is final. */
  | { readonly kind: 'void'; readonly reason: string }
  /** Not used as far as the chain has come: it may still be settled. */
  | { readonly kind: 'unused' }
  /** Nothing can be concluded yet. */
  | { readonly kind: 'undecided'; readonly reason: string };

/** How long before its quote a payment may have been signed, and so may have landed. */
const signedEarlierSecs = 3_600;

/**
 * Asks the chain for a payment's transfer: first in the transactions that were named for it, then by the authorization's state
 * and its log. A payment is void only once the block that proves it is final.
 */
export async function findSettlement(
  chain: Chain,
  payment: SignedPayment,
  hints: PaymentState['hints'],
  quotedAtSecs: number,
): Promise<Finding> {
  const expected = expectedTransfer(payment);
  for (const transaction of hints as readonly Hex[]) {
    const found = await chain.findSettlement(transaction, expected);
    if (found.kind === 'paid') return { kind: 'paid', transaction, proof: found };
  }
  const state = await chain.isUsed(expectedTransfer(payment));
  if (state.kind === 'unavailable') return undecided(state.cause);
  return state.used ? findUse(chain, payment, quotedAtSecs) : judgeUnused(chain, payment);
}

/** How far the clocks of a chain and of the database may differ. */
const clocksDifferSecs = 600;

/**
 * Whether a transfer may have paid for an offer: one that landed before the offer was made has paid for another one. An offer of the future
 * was made while the clock was ahead, and not after the present time.
 */
export function mayBeOfOffer({ blockTimeSecs }: Proof, offeredAtSecs: number, nowSecs: number): boolean {
  const madeAtSecs = Math.min(offeredAtSecs, nowSecs);
  return blockTimeSecs === undefined || blockTimeSecs >= madeAtSecs - clocksDifferSecs;
}

/** Whether a payment's transfer landed before the payment reached the gateway. */
export type Landing =
  | { readonly kind: 'landed'; readonly settlement: Settlement }
  /** The authorization is unused; with a reason if it was withdrawn or used for another transfer. */
  | { readonly kind: 'not_landed'; readonly reason?: string }
  /** The authorization is used and not yet known for what, or the chain gives no answer. */
  | { readonly kind: 'unsure' };

/**
 * A payment's transfer can land before the payment reaches the gateway, since any account may send it. The facilitator then
 * rejects the payment as invalid although its payer is charged. The payer's own signature was checked before: the transfer is
 * public on the chain, and pays only for a client that has it.
 */
export async function findLanded(
  chain: Chain,
  payment: SignedPayment,
  quotedAtSecs: number,
): Promise<Landing> {
  const state = await chain.isUsed(expectedTransfer(payment));
  if (state.kind === 'unavailable') return { kind: 'unsure' };
  if (!state.used) return { kind: 'not_landed' };
  const found = await readUse(chain, payment, quotedAtSecs);
  switch (found.kind) {
    case 'paid':
      return {
        kind: 'landed',
        settlement: { kind: 'settled', transaction: found.transaction, proof: found },
      };
    case 'canceled':
    case 'used_otherwise':
      return { kind: 'not_landed', reason: `authorization_${found.kind}` };
    case 'absent':
    case 'ambiguous':
    case 'unavailable':
      return { kind: 'unsure' };
  }
}

function readUse(chain: Chain, payment: SignedPayment, quotedAtSecs: number): Promise<AuthorizationFound> {
  // a quote of a moment at which the clock was ahead would leave out all that has landed
  const fromSecs = Math.min(quotedAtSecs, Number(payment.validBefore));
  // its nonce may have been cancelled, or used by another authorization, before this one was valid
  return chain.findAuthorization(expectedTransfer(payment), fromSecs - signedEarlierSecs);
}

/** The authorization is used: by the expected transfer, or by something else. */
async function findUse(chain: Chain, payment: SignedPayment, quotedAtSecs: number): Promise<Finding> {
  const found = await readUse(chain, payment, quotedAtSecs);
  switch (found.kind) {
    case 'paid':
      return { kind: 'paid', transaction: found.transaction, proof: found };
    case 'canceled':
    case 'used_otherwise': {
      const finalized = await chain.finalizedBlock();
      if (finalized.kind === 'unavailable') return undecided(finalized.cause);
      if (finalized.block.number < found.blockNumber) return undecided('not_final');
      const at = await chain.blockHashAt(found.blockNumber);
      if (at.kind === 'unavailable') return undecided(at.cause);
      return at.hash === found.blockHash
        ? { kind: 'void', reason: `authorization_${found.kind}` }
        : undecided('not_final');
    }
    case 'absent':
      return undecided('transfer_not_found');
    case 'ambiguous':
      return undecided('transfer_ambiguous');
    case 'unavailable':
      return undecided(found.cause);
  }
}

/** Unused at a final block after it expired, an authorization can never be used. */
async function judgeUnused(chain: Chain, payment: SignedPayment): Promise<Finding> {
  const finalized = await chain.finalizedBlock();
  // it can still be settled, whether or not the node reports a final block
  if (finalized.kind === 'unavailable') return { kind: 'unused' };
  const { hash, timestampSecs } = finalized.block;
  if (BigInt(timestampSecs) < payment.validBefore) return { kind: 'unused' };
  const state = await chain.isUsed(expectedTransfer(payment), hash);
  if (state.kind === 'unavailable') return undecided(state.cause);
  return state.used ? undecided('used_meanwhile') : { kind: 'void', reason: 'authorization_expired' };
}

function undecided(reason: string): Finding {
  return { kind: 'undecided', reason };
}
