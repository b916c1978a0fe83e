/** A request that sets no length holds this part of the available credit: an eighth. */
export const partsOfCredit = 8n;

/** What a length is chosen for. */
export interface LengthChoice {
  /** What the caller can spend: of the account, and of the key's cap and budget. */
  readonly availableMicros: bigint;
  /** What requests of the same account ask for at this moment, and `availableMicros` may still contain. */
  readonly askedMicros: bigint;
  /** The model's longest answer. */
  readonly mostTokens: number;
  /** A typical answer of the model, at least 1. */
  readonly typicalTokens: number;
  /** The most that an answer of a length costs, with its prompt: it grows with the length. */
  readonly costOf: (maxTokens: number) => bigint;
}

/**
 * The length of an answer whose request sets none: the model's longest where an eighth of the available credit pays for it; otherwise
 * what that eighth pays for, or a typical answer if that is longer, or as much of one as the credit pays for. 0 if it pays for no token.
 */
export function defaultTokens(choice: LengthChoice): number {
  const { availableMicros, askedMicros, mostTokens, typicalTokens, costOf } = choice;
  const partMicros = (availableMicros - askedMicros) / partsOfCredit;
  const typical = Math.min(typicalTokens, mostTokens);
  return Math.max(
    affordableTokens(partMicros, mostTokens, costOf),
    affordableTokens(availableMicros, typical, costOf),
  );
}

/** The longest answer of at most `most` tokens that this much credit covers; 0 when it covers none. */
export function affordableTokens(
  availableMicros: bigint,
  most: number,
  costOf: (maxTokens: number) => bigint,
): number {
  let [low, tooMany] = [0, most + 1];
  while (tooMany - low > 1) {
    const middle = Math.floor((low + tooMany) / 2);
    if (costOf(middle) <= availableMicros) low = middle;
    else tooMany = middle;
  }
  return low;
}
