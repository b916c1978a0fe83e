import type { Bug, BugRow } from '../support/planted-copy.ts';
import type { ViolationKind } from './checks/violation.ts';
import type { ChaosOptions } from './chaos.ts';

/** A bug that the harness must find. */
export interface Plant extends Bug {
  /** The invariants of which at least one must report it. */
  readonly caughtBy: readonly ViolationKind[];
  /** The runs that reach it; left out, any. The options of the command come first. */
  readonly reachedBy?: Partial<Pick<ChaosOptions, 'kind' | 'having' | 'scenarios' | 'runs'>>;
}

/** A plant as its table has it. */
export type PlantRow = Omit<Plant, 'edits'> & BugRow;
