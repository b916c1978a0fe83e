import type { ViolationKind } from './checks/violation.ts';

/** One exact replacement in a file of the program. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A plausible bug, which is put into a copy of the program. */
export interface Bug {
  readonly name: string;
  readonly edits: readonly Edit[];
}

/** A bug that the harness must find. */
export interface Plant extends Bug {
  /** The invariants of which at least one must report it. */
  readonly caughtBy: readonly ViolationKind[];
}
