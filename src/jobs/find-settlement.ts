import { expectedTransfer, isSignedByPayer, type SignedPayment } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { PaymentState } from '../domain/payments/quote-state.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { JobsContext } from './context.ts';
import type { Proof, Settlement } from './settlement-outcome.ts';

/** What the chain says of a payment whose outcome nobody knows. */
export type Finding =
  | { readonly kind: 'paid'; readonly transaction: Hex; readonly proof: Proof }
  /** It can never land: unused and out of time, or used up for something else, in a block that is final. */
  | { readonly kind: 'void'; readonly reason: string }
  /** Not used as far as the chain has come: it may still be settled. */
  | { readonly kind: 'unused' }
  /** Nothing that could be acted upon yet. */
  | { readonly kind: 'undecided'; readonly reason: string };

/** How long before its quote a payment may have been signed, and so have landed. */
const signedEarlierSecs = 3_600;

/**
 * Asks the chain what became of a payment: first the transactions that somebody named, then the authorization's state and
 * its own log. Nothing is void before the block that says so is final.
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

/**
 * A payment that a facilitator calls invalid may have been landed before it came to us, as anybody may: then its payer is
 * charged already. `unsure` where the chain says that it is used, or says nothing, and not yet for what. Undefined where
 * it is free, or used for something else.
 */
export async function findLanded(
  context: Pick<JobsContext, 'chains'>,
  payment: SignedPayment,
  quotedAtSecs: number,
): Promise<Settlement | 'unsure' | undefined> {
  const chain = context.chains.get(payment.network);
  if (!chain) return undefined;
  const state = await chain.isUsed(expectedTransfer(payment));
  if (state.kind === 'unavailable') return 'unsure';
  if (!state.used) return undefined;
  const found = await findUse(chain, payment, quotedAtSecs);
  // what anybody can read on the chain pays for nobody who cannot show the payer's own signature
  if (found.kind === 'paid') return isSignedByPayer(payment) ? { ...found, kind: 'settled' } : 'unsure';
  return found.kind === 'void' ? undefined : 'unsure';
}

/** The authorization is used up: by our transfer, or by something else. */
async function findUse(chain: Chain, payment: SignedPayment, quotedAtSecs: number): Promise<Finding> {
  // no authorization is used before it is valid
  const sinceSecs = Math.max(Number(payment.validAfter), quotedAtSecs - signedEarlierSecs);
  const found = await chain.findAuthorization(expectedTransfer(payment), sinceSecs);
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
    case 'unavailable':
      return undecided(found.cause);
  }
}

/** Unused at a final block beyond its time, it can never be used. */
async function judgeUnused(chain: Chain, payment: SignedPayment): Promise<Finding> {
  const finalized = await chain.finalizedBlock();
  // it can be settled all the same, whether or not the chain tells what is final
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
