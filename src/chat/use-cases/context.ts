import type { Config, ModelConfig, ChatConfig, SpendConfig } from '../../base/config/config.ts';
import type { BoundedCache } from '../../base/values/bounded-cache.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Tracing } from '../../base/values/tracing.ts';
import type { Identity } from '../../accounts/use-cases/context.ts';
import type { Upstream } from '../peers/upstream/upstream.ts';
import type { UpstreamHealth } from '../peers/upstream/health.ts';
import type { Budget } from '../../base/runtime/budget.ts';
import type { PromiseTracker } from '../../base/runtime/promise-tracker.ts';
import type { ApiKey } from '../../accounts/store/api-keys.ts';
import type { Places } from '../../base/runtime/places.ts';
import type { HoldMarker } from './hold-marker.ts';
import type { KeyUses } from './key-uses.ts';
import type { AskedHolds } from './asked-holds.ts';
import type { TypicalLengths } from './typical-lengths.ts';
import type { RequestTally } from '../../ledger/store/request-tally.ts';
import type { RefusalCachingLane } from './refusal-cache.ts';
import type { UsageAlert, PayoutAlert } from './operator-alerts.ts';
import type { PrepaidContract } from '../peers/prepaid/prepaid-contract.ts';
import type { OperatorBalance } from './spend/operator-balance.ts';
import type { SpendQueue } from './spend/spend-queue.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

/** What the use cases of model chat work with; each receives it as an argument. */
export interface ChatContext extends Ledger {
  readonly config: Config;
  readonly settings: ChatConfig;
  /** By the name that clients use. */
  readonly models: ReadonlyMap<string, ModelConfig>;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly health: UpstreamHealth;
  /** The cached refusal of a limit that is known to be full. */
  readonly findFullLimit: RefusalCachingLane['findFullLimit'];
  /** Sums the refusals that are not recorded by themselves. */
  readonly requestTally: RequestTally;
  /** The owner of this process's holds, for as long as its heartbeats are recorded. */
  readonly processId: string;
  readonly holdMarker: HoldMarker;
  readonly keyUses: KeyUses;
  /** Limits the requests of a client address that are refused. */
  readonly budget: Budget;
  /** Of the completions that run in this process, by who asked for them. */
  readonly places: Places;
  /** For the length of an answer whose request sets none. */
  readonly typicalLengths: TypicalLengths;
  readonly askedHolds: AskedHolds;
  readonly usageAlert: UsageAlert;
  /** Keys used lately, by their hash. Their limits and revocation are checked where a request is admitted. */
  readonly keys: BoundedCache<string, ApiKey>;
  /** Undefined when the gateway has no user accounts: cookies are then ignored. */
  readonly identity: Identity | undefined;
  /** Undefined when the gateway accepts no spend authorizations. */
  readonly spending: SpendContext | undefined;
  /** Whether completions are sold by x402 to callers without an account. */
  readonly isSold: boolean;
  /** Work that no answer waits for; a shutdown does. */
  readonly running: PromiseTracker;
  /** True in the second half of a shutdown's grace period: admitted requests are finished, others refused. */
  readonly tooLate: () => boolean;
  /** Undefined if requests are not traced. */
  readonly tracing?: Tracing | undefined;
  readonly log: OperatorLog;
}

/** What payment by spend authorizations works with. */
export interface SpendContext extends Pick<ChatContext, 'pool' | 'lane' | 'processId' | 'running' | 'log'> {
  readonly settings: SpendConfig;
  readonly prepaid: PrepaidContract;
  readonly queue: SpendQueue;
  readonly operatorBalance: OperatorBalance;
  readonly payoutAlert: PayoutAlert;
}
