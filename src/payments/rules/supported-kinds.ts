import type { Address } from '../../base/values/primitives.ts';

/** A kind of payments that a facilitator says it settles. */
export interface SupportedKind {
  readonly x402Version: number;
  readonly scheme: string;
  readonly network: string;
  /** Of `upto`: the accounts that submit its transfers. Offers name the first. */
  readonly submitters?: readonly Address[];
}

/** The first kind that has payments of this scheme on this network, by version 2 of x402. */
export function kindOf(
  kinds: readonly SupportedKind[],
  { scheme, network }: { readonly scheme: unknown; readonly network: unknown },
): SupportedKind | undefined {
  return kinds.find(
    (kind) =>
      kind.x402Version === 2 &&
      kind.scheme === scheme &&
      (kind.network === network || kind.network === 'eip155:*'),
  );
}

/** Whether payments of a kind, by version 2 of x402, are among those that a facilitator says it settles. */
export function isAmong(
  kinds: readonly SupportedKind[],
  { scheme, network }: { readonly scheme: unknown; readonly network: unknown },
): boolean {
  return kindOf(kinds, { scheme, network }) !== undefined;
}
