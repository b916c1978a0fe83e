import { type Logger, pino } from 'pino';
import type { Config } from '../../src/base/config/config.ts';
import type { ConstantChanges } from '../../src/base/config/constants.ts';
import { parseConfig } from '../../src/base/config/load.ts';
import { type GatewayOptions, type RunningGateway, startGateway } from '../../src/app/start.ts';
import type { TestChain } from './devnet.ts';
import { createDatabase, gatewayConnections, type TestDatabase } from './database.ts';
import { documentOf } from './documented.ts';
import { metered } from './meter.ts';
import { untilMinuteLasts } from './budget-minute.ts';
import { whenOver } from './shared.ts';

export interface TestGatewayOptions {
  readonly database: TestDatabase;
  readonly chain: Pick<TestChain, 'rpcUrl' | 'facilitatorUrl' | 'token' | 'secondToken'>;
  /** TOML put before the tables: top-level keys. */
  readonly top?: string;
  /** TOML put at the end: more tables. */
  readonly tables?: string;
  readonly facilitatorUrl?: string;
  /** Several, in their order, in place of the one. */
  readonly facilitators?: readonly string[];
  readonly runnerUrl?: string | undefined;
  /** The job prices and policies; by default 1/0 and 1/1 are sold and 1/2 is disabled. */
  readonly jobs?: string;
  readonly logger?: Logger;
  readonly facilitatorAuth?: GatewayOptions['facilitatorAuth'];
  readonly readConfig?: GatewayOptions['readConfig'];
  readonly quiet?: boolean;
  readonly replicaUrls?: readonly string[];
  /** Each answer to `get` and `post` must be as the gateway's own document says. */
  readonly isDocumented?: boolean;
  readonly bind?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly constants?: ConstantChanges;
  /** Default: true. */
  readonly loopbackWebhooks?: boolean;
  /** Changes the whole text at last. */
  readonly change?: (text: string) => string;
  /** Files beside the config. */
  readonly files?: Readonly<Record<string, string>>;
}

export const runnerSecret = 'a-secret-of-the-test-runner-of-length';
export const receiptKey = 'the-receipt-key-of-the-test-gateway';
export const payTo = '0x90f79bf6eb2c4f870365e785982e1f101e93b906';

const defaultJobs = `
[job_prices.1]
0 = "1000000000000000"
1 = "1"
2 = "1000000000000000"

[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"

[[job_policies]]
service_id = 1
job_index = 1
invocation_mode = "public_paid"
`;

const token = (asset: string, symbol: string, name: string) => `
[[accepted_tokens]]
network = "eip155:84532"
asset = "${asset}"
symbol = "${symbol}"
decimals = 6
pay_to = "${payTo}"
${symbol === 'USDC' ? 'peg = "USD"' : ''}
eip712_name = "${name}"
eip712_version = "2"
`;

/** The configuration's text, as it would stand in a file. */
export function configText(options: TestGatewayOptions): string {
  const { chain, top = '', tables = '', jobs = defaultJobs, runnerUrl } = options;
  const runner = `
[[runners]]
services = [1]
mode = "push"
url = "${runnerUrl}"
token = "env:RUNNER_TOKEN"
`;
  return `
bind_address = "${options.bind ?? '127.0.0.1:0'}"
${options.facilitators ? '' : `facilitator_url = "${options.facilitatorUrl ?? chain.facilitatorUrl}"`}
${/^receipt_key /m.test(top) ? '' : 'receipt_key = "env:RECEIPT_KEY"'}
rate_per_native_unit = "3200.00"
markup_bps = 200
log_level = "silent"
${/trust_proxy/.test(top) ? '' : 'trust_proxy = ["127.0.0.1"]'}
${top}
${/\[limits\]/.test(tables) ? '' : '[limits]\nrequests_per_minute = 0'}
${(options.facilitators ?? []).map((url) => `[[facilitators]]\nurl = "${url}"\n`).join('')}
[[networks]]
id = "eip155:84532"
rpc_url = "${chain.rpcUrl}"
${token(chain.token, 'USDC', 'USD Coin')}
${token(chain.secondToken, 'EURC', 'Euro Coin')}
${runnerUrl === undefined ? '' : runner}
${jobs}
${tables}
`;
}

/** The table of a chain's RPC. */
export function networkOf(id: string, rpcUrl: string): string {
  return `[[networks]]\nid = "${id}"\nrpc_url = "${rpcUrl}"\n`;
}

/** Sends requests to one gateway. */
export interface GatewayClient {
  post(
    path: string,
    init?: { body?: string | Uint8Array; headers?: Record<string, string> },
  ): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
}

export interface TestGateway extends RunningGateway, GatewayClient {}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at answers whose shape they assert
  readonly json: any;
}

/** A runner of all jobs that need one, which never leases a call. None if the text has runners. */
export function absentRunner(text: string): string {
  const servicesIn = (pattern: RegExp): string[] => [...text.matchAll(pattern)].flatMap(([, id]) => id ?? []);
  const selling = new Set(servicesIn(/\[\[top_ups\]\]\s+service_id = (\d+)/g));
  const services = servicesIn(/\[job_prices\.(\d+)\]/g).filter((id) => !selling.has(id));
  if (services.length === 0 || text.includes('[[runners]]')) return '';
  return `
[[runners]]
name = "absent"
services = [${services.join(', ')}]
mode = "lease"
token = "env:RUNNER_TOKEN"
`;
}

export async function testConfig(options: TestGatewayOptions): Promise<Config> {
  const text = configText(options);
  const { config } = await parseConfig((options.change ?? String)(text + absentRunner(text)), {
    file: 'test.toml',
    env: { RUNNER_TOKEN: runnerSecret, RECEIPT_KEY: receiptKey, ...options.env },
    constants: {
      log: { sealEveryMs: 20 },
      ...options.constants,
      // if a test has no limits of its own, none is in its way
      limits: {
        ...(/\[limits\]/.test(options.tables ?? '') ? {} : { quotesPerSecond: 0 }),
        ...options.constants?.limits,
      },
    },
    loopbackWebhooks: options.loopbackWebhooks ?? true,
    readFile: async (path) => options.files?.[path] ?? Promise.reject(new Error(`no ${path} here`)),
  });
  return config;
}

/** A real gateway in this process, on its own port. Stopped when the test ends. */
export async function startTestGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const config = await testConfig(options);
  const logger = options.logger ?? pino({ level: 'silent' });
  const { facilitatorAuth, readConfig, quiet = false, replicaUrls = [] } = options;
  const gateway = await metered('starting gateways', () =>
    startGateway({
      config,
      databaseUrl: options.database.url,
      databaseConnections: gatewayConnections,
      logger,
      quiet,
      replicaUrls,
      ...(facilitatorAuth && { facilitatorAuth }),
      ...(readConfig && { readConfig }),
    }),
  );
  whenOver(() => gateway.stop());
  await untilMinuteLasts(config);
  const client = clientOf(gateway.url);
  return { ...gateway, ...(options.isDocumented ? await documented(gateway.url, client) : client) };
}

async function documented(url: string, { get, post }: GatewayClient): Promise<GatewayClient> {
  const check = await documentOf({ url });
  const checked = async (method: string, path: string, asking: Promise<Answer>): Promise<Answer> => {
    const given = await asking;
    const faults = check(method, path, given);
    if (faults.length > 0) throw new Error(`not as the document says: ${faults.join('; ')}`);
    return given;
  };
  return {
    get: (path, headers) => checked('GET', path, get(path, headers)),
    post: (path, init) => checked('POST', path, post(path, init)),
  };
}

/** A gateway on a fresh database. */
export async function startWithDatabase(
  options: Omit<TestGatewayOptions, 'database'>,
): Promise<{ database: TestDatabase; gateway: TestGateway }> {
  const database = await createDatabase();
  return { database, gateway: await startTestGateway({ database, ...options }) };
}

export function clientOf(url: string): GatewayClient {
  return {
    post: async (path, { body = '', headers = {} } = {}) =>
      answer(
        await fetch(url + path, {
          method: 'POST',
          body: typeof body === 'string' ? body : new Uint8Array(body),
          headers: { 'content-type': 'text/plain', ...headers },
        }),
      ),
    get: async (path, headers = {}) => answer(await fetch(url + path, { headers })),
  };
}

async function answer(response: Response): Promise<Answer> {
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}
