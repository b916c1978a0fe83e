import type { Budget } from '../../base/runtime/budget.ts';
import type { LastKnown } from '../../base/runtime/last-known.ts';
import type { BrokerState } from '../../calls/peers/broker/broker.ts';
import type { DeliveryPorts } from '../../calls/use-cases/deliver-call.ts';
import type { LeasePorts } from '../../calls/use-cases/lease-calls.ts';
import type { StreamWatch } from '../../calls/use-cases/stream-watch.ts';
import type { PriceList } from '../../payments/store/price-windows.ts';
import type { ReadLook } from '../store/listing-rounds.ts';
import type { DryRunPorts } from './dry-run.ts';
import type { IssuePorts } from './issue-quote.ts';
import type { PayPorts } from './pay-job.ts';
import type { Rates } from './rates.ts';

/** What the routes and workers of paid jobs take from their composition: the use cases, which they call, say what they need. */
export interface JobsContext extends PayPorts, IssuePorts, DryRunPorts, LeasePorts, DeliveryPorts {
  readonly settings: PayPorts['settings'];
  /** The address that clients get. If the system chooses the port, it is known once the gateway listens. */
  readonly publicUrl: () => string;
  /** What the catalog offers to version 1 clients. */
  readonly priceList: PriceList;
  /** What the tokens are worth now. */
  readonly rates: Rates;
  /** What the looks at the discovery service have shown. */
  readonly listings: LastKnown<ReadLook>;
  readonly budget: Budget;
  /** Of the broker that this process hands calls to; undefined if it hands none. */
  readonly brokerState: () => BrokerState | undefined;
  readonly streams: StreamWatch;
}
