import { type LedgerProblem, LedgerCheck } from '../../src/audit/rules/ledger-check.ts';
import { StreamEnds } from '../../src/audit/rules/stream-ends.ts';

/**
 * The first problem that the check of a ledger finds in these leaves.
 * @throws if a check that forgets each stream after its last event finds anything else
 */
export function firstProblem(leaves: readonly Buffer[]): LedgerProblem | undefined {
  const ends = new StreamEnds();
  for (const [index, leaf] of leaves.entries()) ends.take(streamOf(leaf), leaf, index + 1);
  const keeping = findIn(leaves, new LedgerCheck());
  const forgetting = findIn(leaves, new LedgerCheck((stream, seq) => ends.isLast(stream, seq)));
  if (JSON.stringify(keeping) !== JSON.stringify(forgetting))
    throw new Error(
      `a check that forgets finds ${JSON.stringify(forgetting)}, another one ${JSON.stringify(keeping)}`,
    );
  return keeping;
}

function findIn(leaves: readonly Buffer[], check: LedgerCheck): LedgerProblem | undefined {
  for (const leaf of leaves) {
    const problem = check.next(leaf);
    if (problem) return problem;
  }
  return undefined;
}

function streamOf(leaf: Buffer): string {
  return /"stream":"([^"]*)","type":"[a-z_]+","version":\d+\}$/.exec(leaf.toString())?.[1] ?? '';
}
