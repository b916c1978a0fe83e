/** A kind of payments that a facilitator says it settles. */
export interface SupportedKind {
  readonly x402Version: number;
  readonly scheme: string;
  readonly network: string;
}

/** Whether payments of a kind, by version 2 of x402, are among those that a facilitator says it settles. */
export function isAmong(
  kinds: readonly SupportedKind[],
  { scheme, network }: { readonly scheme: unknown; readonly network: unknown },
): boolean {
  return kinds.some(
    (kind) =>
      kind.x402Version === 2 &&
      kind.scheme === scheme &&
      (kind.network === network || kind.network === 'eip155:*'),
  );
}
