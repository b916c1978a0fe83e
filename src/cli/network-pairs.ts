import { chainIdOf } from '../domain/values/primitives.ts';

/** Arguments that make no sense; the message says why. */
export class ArgumentError extends Error {}

/** Options of the form NETWORK=VALUE, by network. Throws an ArgumentError where one is none. */
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
  return new Map(pairs);
}

/** `--rpc NETWORK=URL`, as often as there are networks. */
export function readRpcUrls(given: readonly string[]): ReadonlyMap<string, string> {
  return readPairs('rpc', given, 'URL', /^https?:\/\/\S+$/);
}

/** Throws an ArgumentError where nothing says how to ask a chain. */
export function requireChains(config: string | undefined, rpcUrls: ReadonlyMap<string, string>): void {
  if (config === undefined && rpcUrls.size === 0)
    throw new ArgumentError(
      "which chain shall be asked? --rpc NETWORK=URL names one, --config the gateway's configuration with all of its own",
    );
}
