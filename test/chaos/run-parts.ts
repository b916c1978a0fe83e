import type { Address } from '../../src/base/values/primitives.ts';
import type { Ambushes } from './ambushes.ts';
import type { ChainGate } from './chain-gate.ts';
import type { Clocks } from './clocks.ts';
import type { Environment } from './environment.ts';
import type { FaultInjector } from './fault-injector.ts';
import type { Freezer } from './freezer.ts';
import type { FrontRunner } from './front-runner.ts';
import type { Random } from './random.ts';
import type { Records } from './records.ts';
import type { Scope } from './rig.ts';
import type { Schedule } from './schedule.ts';

/** What one run is made with. */
export interface RunParts {
  readonly environment: Environment;
  readonly schedule: Schedule;
  readonly random: Random;
  /** The name of its database. */
  readonly database: string;
  /** Of its database; it changes when another server takes over. */
  readonly url: () => string;
  /** Where payments go, and payouts of spends, since this block. */
  readonly payTo: Address;
  readonly recipient: Address;
  readonly fromBlock: bigint;
  /** The processes of the run end with it. */
  readonly scope: Scope;
  readonly faults: FaultInjector;
  readonly records: Records;
  readonly freezer: Freezer;
  readonly gate: ChainGate;
  readonly frontRunner: FrontRunner;
  readonly ambushes: Ambushes;
  readonly clocks: Clocks;
  /** Aborts when the run is over. */
  readonly deadline: AbortSignal;
}
