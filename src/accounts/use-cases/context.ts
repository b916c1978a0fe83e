import type { IdentityConfig } from '../../base/config/config.ts';
import type { Budget } from '../../base/runtime/budget.ts';
import type { ContractSignatureChecker } from '../../base/peers/rpc/contract-signature.ts';
import type { Mailer } from '../../base/peers/mail/mailer.ts';
import type { EventAllowance } from '../../ledger/store/event-allowance.ts';
import type { RequestTally } from '../../ledger/store/request-tally.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { PasswordQueue } from './password-queue.ts';
import type { PromiseTracker } from '../../base/runtime/promise-tracker.ts';
import type { LedgerWriter } from '../../ledger/store/ledger.ts';

/** What the use cases of user accounts work with. */
export interface Identity extends LedgerWriter {
  readonly settings: IdentityConfig;
  /** The origin at which clients reach this gateway. Known once it listens. */
  readonly publicUrl: () => string;
  /** Whether webhooks of users may be on this machine. */
  readonly loopbackWebhooks: boolean;
  /** IPv6 addresses whose first bits, in this number, are equal count as one client. */
  readonly ipv6Prefix: number;
  /** Undefined when the gateway sends no mail: users cannot have passwords then. */
  readonly mailer: Mailer | undefined;
  /** Whether customers have pages here: mails lead to them then. */
  readonly hasPages: boolean;
  /** Whether operators have pages here. */
  readonly hasConsole: boolean;
  /** What requests to the pages and the API for accounts cost. */
  readonly budget: Budget;
  readonly passwords: PasswordQueue;
  /** How many refused sign-ins are recorded one by one. */
  readonly refusalEvents: EventAllowance;
  /** How many sessions are: of users who never had credit, and of the others. */
  readonly sessionEvents: { readonly strangers: EventAllowance; readonly customers: EventAllowance };
  /** How many keys users make who never had credit. */
  readonly keyEvents: EventAllowance;
  /** Sums the refused sign-ins and sessions that are not. */
  readonly requestTally: RequestTally;
  readonly contractSignatures: ContractSignatureChecker;
  /** Work that no answer waits for; a shutdown does. */
  readonly running: PromiseTracker;
  readonly log: OperatorLog;
}
