import OpenAI from 'openai';
import { type Logger, pino } from 'pino';
import {
  type ModelUpstream,
  type ModelUpstreamOptions,
  startModelUpstream,
} from '../../src/devnet/model-upstream.ts';
import type { Config } from '../../src/base/config/config.ts';
import type { ConstantChanges } from '../../src/base/config/constants.ts';
import { parseConfig } from '../../src/base/config/load.ts';
import { type GatewayOptions, type RunningGateway, startGateway } from '../../src/app/start.ts';
import { issueApiKey } from '../../src/accounts/use-cases/api-keys.ts';
import type { ApiKey, BudgetTerms } from '../../src/accounts/store/api-keys.ts';
import { fund, laneOn } from './credit.ts';
import { createDatabase, gatewayConnections, type TestDatabase } from './database.ts';
import { metered } from './meter.ts';
import { untilMinuteLasts } from './budget-minute.ts';
import { useShared, whenOver } from './shared.ts';

export const freeModel = 'devnet-small';
export const paidModel = 'vendor/large';

/** An upstream with a free model and one that has a price; its name holds a slash, and another one upstream. */
export function oneModel(baseUrl: string, more = ''): string {
  return `
[[upstreams]]
name = "model"
base_url = "${baseUrl}"
${more}

[[models]]
name = "${freeModel}"
upstreams = ["model"]
free_tier = true
context_length = 32_768
max_output_tokens = 4_096

[[models]]
name = "${paidModel}"
upstreams = [{ name = "model", model = "devnet-large" }]
input_price = "2.50"
output_price = "10.00"
context_length = 131_072
max_output_tokens = 16_384
`;
}

export interface ChatGatewayOptions {
  readonly database?: TestDatabase;
  /** TOML: top-level keys, keys of `[chat]`, keys of the upstream, more tables. */
  readonly top?: string;
  readonly chat?: string;
  readonly upstream?: string;
  readonly tables?: string;
  readonly constants?: ConstantChanges;
  /** The whole text, changed at last. */
  readonly change?: (text: string) => string;
  readonly model?: ModelUpstreamOptions;
  /** Instead of a devnet's model upstream. */
  readonly upstreamUrl?: string;
  readonly logger?: Logger;
  readonly env?: Readonly<Record<string, string>>;
  readonly bind?: string;
  readonly pageAddition?: GatewayOptions['pageAddition'];
}

const readFile = (path: string) => Promise.reject(new Error(`no ${path} here`));

export async function chatConfigText(
  options: ChatGatewayOptions & { readonly upstreamUrl: string },
): Promise<Config> {
  const text = `
bind_address = "${options.bind ?? '127.0.0.1:0'}"
features = ["chat"]
log_level = "silent"
trust_proxy = ["127.0.0.1"]
${options.top ?? ''}
[chat]
${options.chat ?? ''}
${oneModel(options.upstreamUrl, options.upstream)}
${options.tables ?? ''}
`;
  const source = {
    file: 'test.toml',
    env: options.env ?? {},
    readFile,
    constants: options.constants ?? {},
    loopbackWebhooks: true,
  };
  return (await parseConfig(options.change?.(text) ?? text, source)).config;
}

export interface ChatGateway extends RunningGateway {
  readonly database: TestDatabase;
  readonly model: ModelUpstream;
  /** A key of a new account with an amount of credit. */
  key(
    micros?: bigint,
    asked?: Partial<Pick<ApiKey, 'models' | 'expiresAt'>> & { capMicros?: bigint; budget?: BudgetTerms },
  ): Promise<string>;
  /** The official OpenAI client; anonymous without a key. */
  client(key?: string, options?: ConstructorParameters<typeof OpenAI>[0]): OpenAI;
  post(body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string, key?: string): Promise<Response>;
}

/** A gateway that serves models and nothing else, in this process, with a model upstream. Stopped when the test ends. */
export async function startChatGateway(options: ChatGatewayOptions = {}): Promise<ChatGateway> {
  const model = await startModelUpstream({ port: 0, ...options.model });
  whenOver(() => model.close());
  const database = options.database ?? (await createDatabase());
  const config = await chatConfigText({ upstreamUrl: model.url, ...options });
  const gateway = await metered('starting gateways', () =>
    startGateway({
      config,
      databaseUrl: database.url,
      databaseConnections: gatewayConnections,
      logger: options.logger ?? pino({ level: 'silent' }),
      ...(options.pageAddition && { pageAddition: options.pageAddition }),
    }),
  );
  whenOver(() => gateway.stop());
  await untilMinuteLasts(config);
  return {
    ...gateway,
    database,
    model,
    async key(micros = 1_000_000_000n, asked = {}) {
      const lane = laneOn(database);
      const accountId = await fund(database, lane, micros);
      return (await issueApiKey({ ...database, lane }, { accountId, name: 'of a test', ...asked })).key;
    },
    client: (key, more) =>
      new OpenAI({
        baseURL: `${gateway.url}/v1`,
        apiKey: key ?? 'none',
        ...(key === undefined && { defaultHeaders: { authorization: null } }),
        ...more,
      }),
    post: (body, headers = {}) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    get: (path, key) =>
      fetch(gateway.url + path, { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } }),
  };
}

/**
 * One gateway for all tests of a file that do not disturb each other. Each test asks it from its own address, and finds only its own
 * calls of the upstream.
 */
export function useChatGateway(options?: ChatGatewayOptions): () => ChatGateway {
  const shared = useShared(() => startChatGateway(options));
  let tests = 0;
  return () => {
    const gateway = shared();
    const before = gateway.model.calls.length;
    const client = { 'x-forwarded-for': `10.0.0.${++tests}` };
    return {
      ...gateway,
      model: {
        ...gateway.model,
        get calls() {
          return gateway.model.calls.slice(before);
        },
      },
      client: (key, more = {}) =>
        gateway.client(key, {
          ...more,
          defaultHeaders: { ...client, ...(key === undefined && { authorization: null }) },
        }),
      post: (body, headers = {}) => gateway.post(body, { ...client, ...headers }),
      get: (path, key) =>
        fetch(gateway.url + path, {
          headers: key === undefined ? client : { ...client, authorization: `Bearer ${key}` },
        }),
    };
  };
}

/** A request with one message. */
export function ask(content: string, model = paidModel) {
  return { model, messages: [{ role: 'user' as const, content }] };
}
