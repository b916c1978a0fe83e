import type { Bug } from '../support/planted-copy.ts';
import type { ViolationKind } from './checks/violation.ts';

/** A bug that the harness must find. */
export interface Plant extends Bug {
  /** The invariants of which at least one must report it. */
  readonly caughtBy: readonly ViolationKind[];
}
