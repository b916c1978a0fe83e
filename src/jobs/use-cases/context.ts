import type { Config, JobsConfig } from '../../base/config/config.ts';
import type { Caip2 } from '../../base/values/primitives.ts';
import type { Chain } from '../../payments/peers/chain/chain.ts';
import type { ContractSignatureChecker } from '../../base/peers/rpc/contract-signature.ts';
import type { BrokerState } from '../../calls/peers/broker/broker.ts';
import type { Facilitator } from '../../payments/peers/facilitator/facilitator.ts';
import type { ResultStore } from '../../calls/peers/results/result-store.ts';
import type { PermissionChecker } from '../../base/peers/rpc/permission.ts';
import type { OfferKey } from '../../payments/rules/offer-key.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';
import type { QuoteKeys, QuoteRealm } from '../../payments/rules/quote-echo.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Tracing } from '../../base/values/tracing.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import type { ReadLook } from '../store/listing-looks.ts';
import type { PaymentLookup } from '../../payments/store/payment-lookup.ts';
import type { PriceList } from '../../payments/store/price-windows.ts';
import type { LastKnown } from '../../base/runtime/last-known.ts';
import type { SharedLooks } from '../../base/runtime/shared-looks.ts';
import type { LeasedCall } from '../../calls/store/calls.ts';
import type { PromiseTracker } from '../../base/runtime/promise-tracker.ts';
import type { Budget } from '../../base/runtime/budget.ts';
import type { Catalog } from './catalog.ts';
import type { EventAllowance } from '../../ledger/store/event-allowance.ts';
import type { LostPayments } from '../../payments/use-cases/lost-payments.ts';
import type { Offers } from './offers.ts';
import type { Rates } from './rates.ts';
import type { ReceiptKeys } from '../../payments/use-cases/receipt-keys.ts';
import type { RunnerSilence } from '../../calls/use-cases/runner-silence.ts';
import type { QuoteRate } from './quote-rate.ts';
import type { RequestTally } from '../../ledger/store/request-tally.ts';
import type { SeenQuotes } from './seen-quotes.ts';
import type { StreamWatch } from '../../calls/use-cases/stream-watch.ts';

/** The dependencies of the use cases of paid jobs. */
export interface JobsContext extends Ledger {
  readonly config: Config;
  readonly settings: JobsConfig;
  readonly catalog: Catalog;
  /** What the catalog offers to version 1 clients. */
  readonly priceList: PriceList;
  /** The address that clients get. If the system chooses the port, it is known once the gateway listens. */
  readonly publicUrl: () => string;
  /** Keeps large results; undefined where there is no such store. */
  readonly results: ResultStore | undefined;
  /** Looks payments up as they arrive. */
  readonly lookup: PaymentLookup;
  readonly facilitator: Facilitator;
  /** The accepted tokens that the facilitator settles. */
  readonly offers: Offers;
  /** What the tokens are worth now. */
  readonly rates: Rates;
  /** What the looks at the discovery service have shown. */
  readonly listings: LastKnown<ReadLook>;
  readonly chains: ReadonlyMap<Caip2, Chain>;
  /** Asks the contracts that permit callers. */
  readonly permissions: PermissionChecker;
  /** Asks contract callers whether a signature is theirs. */
  readonly contractSignatures: ContractSignatureChecker;
  /** Lost payments that a recovery still searches. */
  readonly lostPayments: LostPayments;
  readonly budget: Budget;
  /** How many quotes are issued without a key. */
  readonly quoteRate: QuoteRate;
  readonly runnerSilence: RunnerSilence;
  /** Of the broker that this process hands calls to; undefined where it hands none. */
  readonly brokerState: () => BrokerState | undefined;
  /** How many unpaid quotes are recorded with a key. */
  readonly quoteEvents: EventAllowance;
  /** How many quotes a pricing service may issue, each of which is recorded. */
  readonly pricingQuotes: EventAllowance;
  /** How many rejected payments are recorded with a key. */
  readonly rejectionEvents: EventAllowance;
  /** Sums refusals and quotes that are not recorded one by one. */
  readonly requestTally: RequestTally;
  /** Make and open the receipt tokens. */
  readonly receiptKeys: ReceiptKeys;
  /** Authenticate the prices of quotes; undefined where each quote is recorded before its answer. */
  readonly quoteKeys: QuoteKeys | undefined;
  readonly quoteRealm: QuoteRealm;
  /** Sign offers and receipts for others than the payer; undefined where they are not signed. */
  readonly offerKeys: RotatingSecret<OfferKey> | undefined;
  readonly seenQuotes: SeenQuotes;
  /** Quotes that are being recorded behind their answers. */
  readonly unpaidQuotes: PromiseTracker;
  /** Payments that this process is settling now, by stream: a repeated request waits for the same outcome. */
  readonly settling: Map<string, Promise<unknown>>;
  /** Requests in the paid flow, whether or not their clients are still connected: a shutdown waits for them. */
  readonly flows: PromiseTracker;
  /** Called when a call was released, so that the relays need not wait for their next poll. */
  readonly onCallReleased: () => void;
  /** For the runners that wait for calls. */
  readonly leaseLooks: SharedLooks<LeasedCall>;
  /** For those who wait for a receipt to change. */
  readonly streams: StreamWatch;
  /** True once the process shuts down: its loops and waits end. */
  readonly stopping: () => boolean;
  /** True in the second half of the shutdown's grace period: started payments are finished, no new ones are started. */
  readonly tooLate: () => boolean;
  /** Undefined where requests are not traced. */
  readonly tracing?: Tracing | undefined;
  readonly log: OperatorLog;
}
