import { access, constants, readFile, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { reasonOf } from '../config/files.ts';
import { plainHttpWarning } from '../config/hosts.ts';
import { operatorNamePattern, operatorTextPattern } from '../values/operator-words.ts';
import {
  type Address,
  type Caip2,
  chainIdOf,
  type Hex,
  isHex32,
  parseAddress,
} from '../values/primitives.ts';
import { type CommandDescription, mostArguments, type Options, type ValuesOf } from './command.ts';
import { fail } from './terminal.ts';

const dayMs = 86_400_000;
const maxDays = 3_650;

/** Wrong arguments. The message states the expected form; the command has changed nothing. */
export class ArgumentError extends Error {}

/**
 * Reads a command's arguments by its description. Throws an ArgumentError if it takes fewer, if the value of an option is empty,
 * or where one that has one value is given twice: `parseArgs` of node:util would silently take the last.
 */
export function readOptions<Described extends CommandDescription & { readonly options: Options }>(
  described: Described,
  args: readonly string[],
): { readonly values: ValuesOf<Described>; readonly positionals: readonly string[] } {
  const options: Options = described.options;
  const most = mostArguments(described);
  const allowPositionals = most > 0;
  const given = { args: [...args], options: options as Described['options'], allowPositionals };
  const { values, positionals } = parseArgs<typeof given>(given);
  if (positionals.length > most)
    throw new ArgumentError(`one argument too many: ${JSON.stringify(positionals[most])}`);
  const { tokens } = parseArgs({ ...given, options: { ...options }, strict: false, tokens: true });
  const names = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    if (token.value === '' && options[token.name]?.default !== '')
      throw new ArgumentError(`--${token.name} is empty: leave it out, or say which`);
    if (options[token.name]?.multiple === true) continue;
    if (names.has(token.name)) throw new ArgumentError(`--${token.name} is given twice: give it once`);
    names.add(token.name);
  }
  return { values, positionals };
}

/** A database id in decimal. Throws an ArgumentError with `expected` if the text is not one. */
export function readId(text: string | undefined, expected: string): number {
  if (text === undefined || !/^[1-9]\d{0,14}$/.test(text)) throw new ArgumentError(expected);
  return Number(text);
}

/** The id that is the only argument of a command. */
export function readOnlyId([text, ...more]: readonly string[], expected: string): number {
  if (more.length > 0) throw new ArgumentError(expected);
  return readId(text, expected);
}

/** The whole number of an option, from 1 on. Throws an ArgumentError if the text is not one. */
export function readCount(option: string, text: string, most: number): number {
  const count = Number(text);
  if (/^[1-9]\d{0,8}$/.test(text) && count <= most) return count;
  throw new ArgumentError(`--${option} is a whole number from 1 to ${most}`);
}

/** A hash, in lower case. Throws an ArgumentError, which begins with `meaning`, where the text is none. */
export function readHash(text: string | undefined, meaning: string): Hex {
  const hash = text?.toLowerCase() ?? '';
  if (isHex32(hash)) return hash;
  throw new ArgumentError(`${meaning}: 0x and 64 hexadecimal digits`);
}

/** An address, in lower case. Throws an ArgumentError, which begins with `meaning`, where the text is none. */
export function readAddress(text: string, meaning: string): Address {
  const address = parseAddress(text);
  if (address !== undefined) return address;
  throw new ArgumentError(`${meaning}: 0x and 40 hexadecimal digits`);
}

/** The file that an option names. Throws an ArgumentError where it cannot be read. */
export async function readGivenFile(option: string, file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new ArgumentError(`--${option} ${file} cannot be read: ${reasonOf(error)}`);
  });
}

/** The same for a file of JSON. */
export async function readGivenJson(option: string, file: string): Promise<unknown> {
  const text = await readGivenFile(option, file);
  try {
    return JSON.parse(text);
  } catch {
    throw new ArgumentError(`--${option} ${file} is not JSON`);
  }
}

/** The operator that `--by` names, else the account on this machine. Throws an ArgumentError where the name is invalid. */
export function readOperator(by: string | undefined): string {
  const name = by ?? userInfo().username;
  if (operatorNamePattern.test(name)) return name;
  throw new ArgumentError(
    '--by is your name, which the ledger keeps for ever: 1 to 64 letters, digits, dots, dashes, underscores; no e-mail address',
  );
}

/** The text of an option for the record. Throws an ArgumentError, which begins with `meaning`, if the text is invalid. */
export function readOperatorText(text: string | undefined, meaning: string): string {
  if (text !== undefined && operatorTextPattern.test(text)) return text;
  throw new ArgumentError(
    `${meaning}, which the ledger keeps for ever: 1 to 200 visible ASCII characters without "@"`,
  );
}

/** A loopback port that an option names; 0 is any free one. Throws an ArgumentError if the text is not one. */
export function readPort(option: string, text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port;
  throw new ArgumentError(`${option} is a port from 0 to 65535`);
}

/** `--days`: how long a token or a key is valid. Undefined: without end. Throws an ArgumentError if it is out of bounds. */
export function readExpiry(days: string | undefined): Date | undefined {
  if (days === undefined) return undefined;
  return new Date(Date.now() + readCount('days', days, maxDays) * dayMs);
}

/** `--network`. Throws an ArgumentError if it is not the CAIP-2 name of an EVM chain. */
export function readNetwork(network: string | undefined): Caip2 {
  if (network === undefined || chainIdOf(network) === undefined)
    throw new ArgumentError('--network is the CAIP-2 name of the chain, such as eip155:8453');
  return network as Caip2;
}

/** Options of the form NETWORK=VALUE, by network. Throws an ArgumentError if one has another form, or if a network is given twice. */
export function readPairs(
  name: string,
  given: readonly string[],
  what: string,
  form: RegExp,
): ReadonlyMap<string, string> {
  const pairs = given.map((text): [string, string] => {
    const at = text.indexOf('=');
    return [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
  });
  for (const [network, value] of pairs)
    if (chainIdOf(network) === undefined || !form.test(value))
      throw new ArgumentError(`--${name} is NETWORK=${what}, such as eip155:8453=${what}`);
  const byNetwork = new Map<string, string>();
  for (const [network, value] of pairs) {
    if (byNetwork.has(network))
      throw new ArgumentError(`--${name} is given twice for ${network}: give it once for each network`);
    byNetwork.set(network, value);
  }
  return byNetwork;
}

/** `--rpc NETWORK=URL`, once for each network. */
export function readRpcUrls(given: readonly string[]): ReadonlyMap<string, string> {
  const urls = readPairs('rpc', given, 'URL', /^https?:\/\/\S+$/);
  for (const [network, url] of urls) {
    if (!URL.canParse(url)) throw new ArgumentError(`--rpc ${network} is not a URL`);
    const warning = plainHttpWarning('rpc_url', url);
    if (warning !== undefined) fail(`warning: --rpc ${network} ${warning}`);
  }
  return urls;
}

/** Throws an ArgumentError if no RPC is named. */
export function requireChains(config: string | undefined, rpcUrls: ReadonlyMap<string, string>): void {
  if (config === undefined && rpcUrls.size === 0)
    throw new ArgumentError(
      "an RPC is missing: name one with --rpc NETWORK=URL, or the gateway's configuration with --config FILE",
    );
}

/** Throws an ArgumentError if a file that an option names cannot be written: before the command does anything. */
export async function requireWritable(option: string, file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isDirectory()) throw new ArgumentError(`--${option} ${file} cannot be written: it is a folder`);
  await access(found ? file : path.dirname(file), constants.W_OK).catch(() => {
    throw new ArgumentError(
      `--${option} ${file} cannot be written: ${found ? 'it' : 'its folder does not exist or'} is not writable`,
    );
  });
}
