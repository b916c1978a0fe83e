import type pg from 'pg';
import type { SpendConfig } from '../../../base/config/config.ts';
import type { OperatorLog } from '../../../base/values/operator-log.ts';
import type { PrepaidContract } from '../../peers/prepaid/prepaid-contract.ts';
import type { PromiseTracker } from '../../../base/runtime/promise-tracker.ts';
import type { Lane } from '../../../ledger/store/lane.ts';
import type { OperatorBalance } from './operator-balance.ts';
import type { PayoutAlert } from './payout-alert.ts';
import type { SpendQueue } from './spend-queue.ts';

/** What payment by spend authorizations works with. */
export interface SpendContext {
  readonly settings: SpendConfig;
  readonly prepaid: PrepaidContract;
  readonly queue: SpendQueue;
  readonly operatorBalance: OperatorBalance;
  readonly payoutAlert: PayoutAlert;
  readonly pool: pg.Pool;
  readonly lane: Lane;
  readonly processId: string;
  /** Work that no answer waits for; a shutdown does. */
  readonly running: PromiseTracker;
  readonly log: OperatorLog;
}
