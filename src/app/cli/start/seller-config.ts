import type { TokenPresetName } from '../../../base/config/presets.ts';

/** The configuration of a gateway that sells one thing, as the commands `init` and `proxy` write it. */
export interface SellerConfig {
  /** The first lines, each a comment. */
  readonly intro: readonly string[];
  /** The port of the gateway, on loopback; in a container, which others reach only where its machine lets them, on all addresses. */
  readonly port: string;
  readonly isContainer?: boolean;
  /** Where clients find the gateway, through a proxy on this machine; undefined: on loopback alone. */
  readonly publicUrl?: string | undefined;
  readonly facilitatorUrl: string;
  /** Whether the facilitator wants a secret. */
  readonly hasFacilitatorToken?: boolean;
  /** The value of the key of a secret, such as `"env:QUOTE_KEY"`. */
  readonly secret: (name: SellerSecret) => string;
  /** A preset, or the facts of a devnet's token. */
  readonly token: TokenPresetName | DevnetToken;
  readonly network: string;
  readonly rpcUrl: string;
  readonly payTo: string;
  readonly sold: SoldApi | SoldJob;
}

export type SellerSecret = 'receipt_key' | 'quote_key' | 'facilitator_token' | 'runner_token';

export interface DevnetToken {
  readonly network: string;
  readonly asset: string;
}

/** Those of a path that is sold for all methods. */
export const allMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Paths of an HTTP API. */
export interface SoldApi {
  readonly kind: 'api';
  readonly to: string;
  readonly routes: readonly SoldRoute[];
  readonly port: string;
  readonly publicUrl?: string | undefined;
}

export interface SoldRoute {
  readonly methods: readonly string[];
  readonly path: string;
  /** As `0.01 USD`. */
  readonly price: string;
}

/** A job whose calls a runner fetches. */
export interface SoldJob {
  readonly kind: 'job';
  readonly name: string;
  /** As `0.01 USD`. */
  readonly price: string;
}

const text = JSON.stringify;

/** The text of the file. */
export function sellerConfig(config: SellerConfig): string {
  const host = config.isContainer ? '0.0.0.0' : '127.0.0.1';
  const { intro, port, publicUrl, facilitatorUrl, secret, token, network, rpcUrl, payTo, sold } = config;
  const lines = [
    ...intro.map((line) => `# ${line}`),
    `bind_address = "${host}:${port}"`,
    ...(publicUrl === undefined
      ? []
      : [
          `public_url = ${text(publicUrl)}`,
          `trust_proxy = [${config.isContainer ? '"172.16.0.0/12"' : '"127.0.0.1"'}] # the proxy on this machine`,
        ]),
    `facilitator_url = ${text(facilitatorUrl)}`,
    ...(config.hasFacilitatorToken ? [`facilitator_token = ${secret('facilitator_token')}`] : []),
    `receipt_key = ${secret('receipt_key')}`,
    `quote_key = ${secret('quote_key')}`,
    '',
    '[[accepted_tokens]]',
    ...(typeof token === 'string' ? [`preset = ${text(token)}`] : factsOf(token)),
    `pay_to = "${payTo}"`,
    '',
    '[[networks]]',
    `id = "${network}"`,
    `rpc_url = ${text(rpcUrl)}`,
    '',
    ...(sold.kind === 'api' ? apiTables(sold, host) : jobTables(sold, secret)),
  ];
  return `${lines.join('\n')}\n`;
}

function factsOf({ network, asset }: DevnetToken): string[] {
  return [
    `network = "${network}"`,
    `asset = "${asset}"`,
    'symbol = "USDC"',
    'decimals = 6',
    'peg = "USD"',
    'eip712_name = "USD Coin"',
    'eip712_version = "2"',
  ];
}

function apiTables({ to, routes, port, publicUrl }: SoldApi, host: string): string[] {
  return [
    '[route_listener]',
    `bind_address = "${host}:${port}"`,
    ...(publicUrl === undefined ? [] : [`public_url = ${text(publicUrl)}`]),
    ...routes.flatMap(({ methods, path, price }, index) => [
      '',
      '[[routes]]',
      'service_id = 1',
      `job_index = ${index}`,
      `methods = ${text(methods)}`,
      `path = ${text(path)}`,
      `upstream = ${text(to)}`,
      `price = ${text(price)}`,
    ]),
  ];
}

function jobTables({ name, price }: SoldJob, secret: SellerConfig['secret']): string[] {
  return [
    '[job_prices.1]',
    `0 = ${text(price)}`,
    '',
    '[[job_policies]]',
    'service_id = 1',
    'job_index = 0',
    'invocation_mode = "public_paid"',
    `name = ${text(name)}`,
    '',
    '[[runners]]',
    'services = [1]',
    'mode = "lease"',
    `token = ${secret('runner_token')}`,
  ];
}
