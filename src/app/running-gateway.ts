import type { AddressInfo } from 'node:net';
import type { Config } from '../base/config/config.ts';
import type { Part } from './openapi/document.ts';
import type { QuoteIssuer } from '../jobs/use-cases/issue-quote.ts';
import type { Ending } from './shut-down.ts';

/** A running gateway. */
export interface RunningGateway {
  /** The address that it listens on. */
  readonly url: string;
  /** Where paid routes are served; undefined where it has none. */
  readonly routesUrl: string | undefined;
  /** Undefined where it is live. */
  readonly quiet: Quiet | undefined;
  /** Issues quotes that this gateway takes payments for: for a pricing service. Undefined if it sells no jobs. */
  readonly quotes: QuoteIssuer | undefined;
  /**
   * Puts another configuration's prices, rates, policies, tokens and models in force, all or nothing.
   * Returns the TOML names of changed keys that require a restart.
   * @throws ConfigError if a chain contradicts it, StartError if the gateway is quiet
   */
  reload(config: Config): Promise<readonly string[]>;
  /** Records that a configuration was refused, with the number of its mistakes. */
  refuseReload(mistakes: number): Promise<void>;
  /**
   * From now on the gateway is not ready, and serves all the same. Resolves after `drain_delay_secs`: by then load balancers send
   * requests elsewhere.
   */
  drain(): Promise<void>;
  /** Finishes accepted requests, stops the workers and closes every connection. Safe to call twice. */
  stop(): Promise<Ending>;
  /** Requests that have no answer yet. */
  openRequests(): number;
}

/** A gateway that serves only reads, and makes no request to anyone. */
export interface Quiet {
  /** One sentence without a full stop. */
  readonly reason: string;
  /** Resolves once the database is the ledger: a gateway that starts now is live. Never, if an operator asked for quiet. */
  readonly over: Promise<void>;
}

export function listeningUrl(
  address: AddressInfo | string | null,
  { bindAddress }: Pick<Config, 'bindAddress'>,
): string {
  const host = bindAddress.host.includes(':') ? `[${bindAddress.host}]` : bindAddress.host;
  const port = typeof address === 'object' && address ? address.port : bindAddress.port;
  return `http://${host}:${port}`;
}

/** The parts that the OpenAPI document describes. */
export function partsOf({ features, identity, log }: Config): readonly Part[] {
  return [
    ...features,
    ...(identity ? (['identity'] as const) : []),
    'audit',
    ...(log ? (['log'] as const) : []),
  ];
}
