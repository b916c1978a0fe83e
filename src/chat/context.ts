import type pg from 'pg';
import type { Config, ModelConfig, ChatConfig } from '../config/config.ts';
import type { Upstream } from '../peers/upstream/upstream.ts';
import type { UpstreamHealth } from '../peers/upstream/health.ts';
import type { OperatorLog } from '../domain/values/operator-log.ts';
import type { LedgerDatabase } from '../store/database.ts';
import type { Lane } from '../store/lane.ts';
import type { KeyCache } from './caller.ts';
import type { HoldMarker } from './hold-marker.ts';
import type { Identity } from '../identity/context.ts';
import type { RefusalCachingLane } from './refusal-cache.ts';
import type { PromiseTracker } from '../runtime/promise-tracker.ts';
import type { Spending } from '../spend/spend.ts';

/** What the use cases of model chat work with. Handed to each of them; nothing here is looked up elsewhere. */
export interface ChatContext {
  readonly config: Config;
  readonly settings: ChatConfig;
  /** By the name that clients use. */
  readonly models: ReadonlyMap<string, ModelConfig>;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly health: UpstreamHealth;
  readonly lane: Lane;
  /** Answers without the ledger where a limit is known to be full. */
  readonly findFullLimit: RefusalCachingLane['findFullLimit'];
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  /** What this process holds credit as, until it is not seen any more. */
  readonly processId: string;
  readonly holdMarker: HoldMarker;
  readonly keys: KeyCache;
  /** Undefined where people have no accounts here: cookies mean nothing then. */
  readonly identity: Identity | undefined;
  /** Undefined where nobody can pay by spend authorizations. */
  readonly spending: Spending | undefined;
  /** Work that no answer waits for; a shutdown does. */
  readonly running: PromiseTracker;
  /** True once the process is going down: what was admitted is finished, nothing new is taken. */
  readonly stopping: () => boolean;
  readonly log: OperatorLog;
}
