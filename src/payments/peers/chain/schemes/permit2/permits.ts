import type { Address, Hex } from '../../../../../base/values/primitives.ts';
import { addressWord } from '../../../../../base/peers/rpc/eth-call.ts';
import type { Transfer } from '../../transfers.ts';

// Permit2 logs nothing when a nonce is used: which transfer belongs to which nonce is read in the calldata. However x402's contract was
// called, directly or in a batch, its arguments are words in a row: token, amount, nonce, deadline, payer, payee, validAfter for `exact`;
// token, most, nonce, deadline, amount, payer, payee, facilitator, validAfter for `upto`.

/** What is moved from whom to whom. */
export type Move = Pick<Transfer, 'asset' | 'from' | 'to' | 'value'>;

const wordChars = 64;

/** A permit in calldata. */
export interface Permit {
  readonly nonce: Hex;
  /** The atoms that were signed at most, of `upto`; undefined for `exact`. */
  readonly most: bigint | undefined;
}

/** The permits for a move that a transaction's calldata has, of every scheme, in their order, each once. */
export function permitsFor(input: Hex, { asset, from, to, value }: Move): Permit[] {
  const token = wordOf(asset);
  const amount = numberWord(value);
  const parties = `${wordOf(from)}${wordOf(to)}`;
  const permits = new Map<string, Permit>();
  for (let at = input.indexOf(token); at !== -1; at = input.indexOf(token, at + 1)) {
    const [permittedAt, nonceAt, restAt] = [at + wordChars, at + 2 * wordChars, at + 4 * wordChars];
    const isExact = input.startsWith(amount, permittedAt) && input.startsWith(parties, restAt);
    const isFound = isExact || input.startsWith(`${amount}${parties}`, restAt);
    // whole bytes, after the prefix
    if (at % 2 !== 0 || !isFound) continue;
    const nonce: Hex = `0x${input.slice(nonceAt, nonceAt + wordChars)}`;
    const most = isExact ? undefined : BigInt(`0x${input.slice(permittedAt, nonceAt)}`);
    permits.set(`${nonce}/${most}`, { nonce, most });
  }
  return [...permits.values()];
}

function numberWord(value: bigint): string {
  return value.toString(16).padStart(wordChars, '0');
}

function wordOf(address: Address): string {
  return addressWord(address).slice(2);
}

/** Which of a transaction's transfers of one move belongs to a permit. */
export type PermitUse<T> =
  | { readonly kind: 'moved'; readonly transfer: T }
  /** Each transfer belongs to another permit. */
  | { readonly kind: 'others' }
  /** The calldata does not have as many permits as there are transfers. */
  | { readonly kind: 'ambiguous' };

/** @param transfers those of the move in the transaction, in the order of their logs, one or more */
export function permitUse<T>(
  permits: readonly Permit[],
  { nonce, most }: Permit,
  transfers: readonly T[],
): PermitUse<T> {
  if (permits.length !== transfers.length) return { kind: 'ambiguous' };
  const transfer = transfers[permits.findIndex((one) => one.nonce === nonce && one.most === most)];
  return transfer === undefined ? { kind: 'others' } : { kind: 'moved', transfer };
}
