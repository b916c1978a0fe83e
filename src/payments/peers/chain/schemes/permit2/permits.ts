import type { Address, Hex } from '../../../../../base/values/primitives.ts';
import { addressWord } from '../../../../../base/peers/rpc/eth-call.ts';
import type { Transfer } from '../../transfers.ts';

// Permit2 logs nothing when a nonce is used: which transfer belongs to which nonce is read in the calldata. However x402's contract was
// called, directly or in a batch, its arguments are words in a row: token, amount, nonce, deadline, payer, payee, validAfter for `exact`;
// token, most, nonce, deadline, amount, payer, payee, facilitator, validAfter for `upto`.

/** What is moved from whom to whom. */
export type Move = Pick<Transfer, 'asset' | 'from' | 'to' | 'value'>;

const wordChars = 64;

/**
 * The nonces of the permits for a move that a transaction's calldata has, in their order, each once.
 * @param isUpto whether the amount that was moved stands beside the permit
 * @param most of those for at most this many atoms; undefined: of all
 */
export function permitNonces(
  input: Hex,
  { asset, from, to, value }: Move,
  { isUpto, most }: { readonly isUpto: boolean; readonly most?: bigint | undefined },
): Hex[] {
  const token = wordOf(asset);
  const amount = numberWord(value);
  const parties = `${wordOf(from)}${wordOf(to)}`;
  const [permitted, moved] = isUpto
    ? [most === undefined ? '' : numberWord(most), `${amount}${parties}`]
    : [amount, parties];
  const nonces = new Set<Hex>();
  for (let at = input.indexOf(token); at !== -1; at = input.indexOf(token, at + 1)) {
    const nonceAt = at + 2 * wordChars;
    // whole bytes, after the prefix
    if (
      at % 2 === 0 &&
      input.startsWith(permitted, at + wordChars) &&
      input.startsWith(moved, nonceAt + 2 * wordChars)
    )
      nonces.add(`0x${input.slice(nonceAt, nonceAt + wordChars)}`);
  }
  return [...nonces];
}

function numberWord(value: bigint): string {
  return value.toString(16).padStart(wordChars, '0');
}

function wordOf(address: Address): string {
  return addressWord(address).slice(2);
}

/** Which of a transaction's transfers of one move belongs to a nonce. */
export type PermitUse<T> =
  | { readonly kind: 'moved'; readonly transfer: T }
  /** Each transfer belongs to another nonce. */
  | { readonly kind: 'others' }
  /** The calldata does not have as many permits as there are transfers. */
  | { readonly kind: 'ambiguous' };

/** @param transfers those of the move in the transaction, in the order of their logs, one or more */
export function permitUse<T>(nonces: readonly Hex[], nonce: Hex, transfers: readonly T[]): PermitUse<T> {
  if (nonces.length !== transfers.length) return { kind: 'ambiguous' };
  const transfer = transfers[nonces.indexOf(nonce)];
  return transfer === undefined ? { kind: 'others' } : { kind: 'moved', transfer };
}
