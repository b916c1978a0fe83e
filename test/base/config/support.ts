import { type LoadedConfig, parseConfig } from '../../../src/base/config/load.ts';
import type { JobsConfig } from '../../../src/base/config/config.ts';
import { ConfigError } from '../../../src/base/config/mistakes.ts';

/** Files that the injected reader knows, by path. */
type Files = Readonly<Record<string, string>>;

export const env = { RUNNER_TOKEN: 'a-runner-token-of-enough-characters', FACILITATOR_TOKEN: 'secret' };
/** The secrets that every gateway with paid jobs has. */
const keysEnv = {
  RECEIPT_KEY: 'a-receipt-key-of-thirty-two-chars',
  QUOTE_KEY: 'a-key-of-quotes-of-thirty-two-chars',
};

export const token = `[[accepted_tokens]]
network = "eip155:8453"
asset = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
symbol = "USDC"
decimals = 6
pay_to = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
eip712_name = "USD Coin"
eip712_version = "2"
`;

export const networks = `[[networks]]
id = "eip155:8453"
rpc_url = "https://rpc.example"
`;

export const runner = `[[runners]]
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"
`;

/** The keys that every x402 gateway must have; `extra` goes before the first table. */
export function minimal(extra = ''): string {
  return `bind_address = "127.0.0.1:8402"
facilitator_url = "https://facilitator.example/x402/"
rate_per_native_unit = "3200.00"
${extra}${extra === '' ? '' : '\n'}receipt_key = "env:RECEIPT_KEY"
quote_key = "env:QUOTE_KEY"
${token}`;
}

/** A file of the given top-level lines only, with x402 off. */
export function bare(lines: string): string {
  return `bind_address = "127.0.0.1:8402"\nfeatures = []\n${lines}`;
}

export async function parse(text: string, files: Files = {}, variables: Files = env): Promise<LoadedConfig> {
  return parseConfig(text, {
    file: 'conf/gateway.toml',
    env: { ...keysEnv, ...variables },
    readFile: (path) => {
      const found = files[path];
      if (found !== undefined) return Promise.resolve(found);
      return Promise.reject(Object.assign(new Error('nothing here'), { code: 'ENOENT' }));
    },
  });
}

export async function parseX402(text: string, files: Files = {}): Promise<JobsConfig> {
  const { config } = await parse(text, files);
  if (config.jobs === undefined) throw new Error('x402 is off');
  return config.jobs;
}

/** The mistakes as `line path: message` (`-` for no line); empty when the text is accepted. */
export async function mistakesIn(text: string, files: Files = {}, variables: Files = env): Promise<string[]> {
  return mistakesOf(parse(text, files, variables));
}

export async function mistakesOf(loading: Promise<LoadedConfig>): Promise<string[]> {
  try {
    await loading;
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.mistakes.map(({ line, path, message }) => `${line ?? '-'} ${path}: ${message}`);
  }
}

/** Only the messages, without lines. */
export async function wrongs(text: string, files: Files = {}, variables: Files = env): Promise<string[]> {
  return (await mistakesIn(text, files, variables)).map((mistake) => mistake.replace(/^\S+ /, ''));
}

/** A model's server, and a model of it that costs nothing. */
export const localUpstream = `[[upstreams]]
name = "local"
base_url = "http://127.0.0.1:8415/v1/"
`;

export const freeModel = `[[models]]
name = "free"
upstreams = ["local"]
free_tier = true
context_length = 8192
max_output_tokens = 1024
`;
