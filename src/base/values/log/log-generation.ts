import type { NoteSigner } from './checkpoint.ts';

/**
 * A log has one generation more with each recovery of a ledger that lost events: a name never signs two histories.
 * The first has the configured name, the second that name and `/2`, and so on.
 */
export interface LogGeneration {
  /** From 1. */
  readonly generation: number;
  /** The `ledger_recovered` event that began it: each of its heads covers that event. 0 for the first. */
  readonly beganAtSeq: number;
}

export function originIn(origin: string, generation: number): string {
  return generation === 1 ? origin : `${origin}/${generation}`;
}

/** The same key under the name of a generation. */
export function signerIn(signer: NoteSigner, generation: number): NoteSigner {
  return signer.renamed(originIn(signer.name, generation));
}
