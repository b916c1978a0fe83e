import type pg from 'pg';
import type { IdentityConfig } from '../config/config.ts';
import type { ContractSignatureChecker } from '../peers/rpc/contract-signature.ts';
import type { Mailer } from '../peers/mail/mailer.ts';
import type { Lane } from '../store/lane.ts';
import type { OperatorLog } from '../domain/values/operator-log.ts';
import type { PromiseTracker } from '../runtime/promise-tracker.ts';

/** What the use cases of people's accounts work with. */
export interface Identity {
  readonly settings: IdentityConfig;
  readonly pool: pg.Pool;
  readonly lane: Lane;
  /** Where this gateway is reached: an origin. Known once it listens. */
  readonly publicUrl: () => string;
  /** How many leading bits make two IPv6 addresses one client. */
  readonly ipv6Prefix: number;
  /** Undefined where none are sent, and so nobody has a password. */
  readonly mailer: Mailer | undefined;
  readonly contractSignatures: ContractSignatureChecker;
  /** Work that no answer waits for; a shutdown does. */
  readonly running: PromiseTracker;
  readonly log: OperatorLog;
}
