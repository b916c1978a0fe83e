import type { Bug, BugRow } from '../support/planted-copy.ts';

export type Tier = 'tests' | 'rigs';

/** The test that fails with a mutation. */
export interface Catcher {
  readonly tier: Tier;
  readonly file: string;
  /** Absent if the whole file cannot be loaded. */
  readonly name?: string;
}

/** A mistake that was drawn by chance, and what catches it. */
export interface Mutation extends Bug {
  /** Absent until `npm run mutations -- --full` has found it. */
  readonly caughtBy?: Catcher;
}

/** A mutation as its table has it. */
export interface MutationRow extends BugRow {
  readonly testFile?: string;
  readonly testName?: string;
}
