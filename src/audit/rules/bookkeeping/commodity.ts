import { nativeDecimals } from '../../../base/values/native-coin.ts';
import { hashOf } from './account.ts';
import type { Commodity } from '../../../base/values/entry.ts';

/** Where the ledger does not say which currency its credit is in. */
const unknownCurrency = 'CREDIT';

/** The currency of credit, in micros, such as `USD`. */
export function currencyCommodity(currency = unknownCurrency): Commodity {
  return {
    name: currency,
    tag: currency,
    network: undefined,
    asset: undefined,
    symbol: currency,
    decimals: 6,
  };
}

const currencyTypes: ReadonlySet<string> = new Set([
  'credit_topped_up',
  'credit_granted',
  'operator_models_loaded',
]);

/** The currency of credit, if an event says it. */
export function currencyIn({
  type,
  data,
}: {
  readonly type: string;
  readonly data: object;
}): string | undefined {
  if (!currencyTypes.has(type)) return undefined;
  const { currency } = data as { readonly currency?: unknown };
  return typeof currency === 'string' ? currency : undefined;
}

interface Token {
  readonly network: string;
  readonly asset: string;
  readonly symbol: string;
  readonly decimals: number;
}

/** The longest name that beancount accepts. */
const mostLetters = 24;

/**
 * The tokens of a ledger by name. A token is identified by network, contract and decimals and keeps its first name; if the
 * name is taken, the contract's first digits follow it. So a name never changes between exports.
 */
export class Commodities {
  readonly #known: Map<string, Commodity>;
  readonly #names: Set<string>;

  /** @param known those of earlier events by their keys, in the order of {@link list} */
  constructor(known: Iterable<readonly [key: string, commodity: Commodity]> = []) {
    this.#known = new Map(known);
    this.#names = new Set([...this.#known.values()].map(({ name }) => name));
  }

  /** In the order of their first use. A key tells what a commodity is. */
  list(): (readonly [key: string, commodity: Commodity])[] {
    return [...this.#known];
  }

  token({ network, asset, symbol, decimals }: Token): Commodity {
    const key = `${network}/${asset}/${decimals}`;
    return this.#named(key, { network, asset, symbol, decimals }, contractIn(asset));
  }

  /** The token that a prepaid contract pays out. The ledger does not have its decimals, so it is counted in atoms. */
  spend(network: string, contract: string): Commodity {
    const token = { network, asset: contract, symbol: 'SPEND', decimals: 0 };
    return this.#named(`${network}/${contract}/spend`, token, contractIn(contract));
  }

  /** The chain's own coin, in wei. */
  coin({ network, symbol }: Pick<Token, 'network' | 'symbol'>): Commodity {
    const coin = { network, asset: undefined, symbol, decimals: nativeDecimals };
    return this.#named(`${network}/coin`, coin, 'COIN');
  }

  /** `mark` keeps it apart from others of its symbol. */
  #named(
    key: string,
    token: Omit<Commodity, 'name' | 'tag' | 'network'> & Pick<Token, 'network'>,
    mark: string,
  ): Commodity {
    const known = this.#known.get(key);
    if (known) return known;
    const chain = token.network.replace('eip155:', '');
    const plain = cleanSymbol(token.symbol);
    const tags = [plain, `${plain}-${mark}`, `${plain}-${mark}-${token.decimals}`];
    const tag =
      tags.find((one) => `${one}-${chain}`.length <= mostLetters && !this.#names.has(`${one}-${chain}`)) ??
      `${plain.slice(0, 4)}-${hashOf(key)}`;
    // a chain id may be too long for any name
    const whole = `${tag}-${chain}`;
    const name = whole.length <= mostLetters ? whole : tag;
    const commodity = { ...token, name, tag };
    this.#names.add(name);
    this.#known.set(key, commodity);
    return commodity;
  }
}

/**
 * The names that journals have for tokens, for lists that do not read the whole ledger. Of two tokens with one symbol and
 * network, the order of their first use decides the names, which a list does not know: such a token has no name here.
 */
export function namesOfTokens(
  tokens: readonly Token[],
): (
  token: Pick<Token, 'network' | 'symbol'> & { readonly asset?: string | undefined },
) => string | undefined {
  const byName = Map.groupBy(tokens, plainName);
  return (token) => {
    const name = plainName(token);
    const others = (byName.get(name) ?? []).filter(({ asset }) => asset !== token.asset);
    const versions = new Set((byName.get(name) ?? []).map(({ decimals }) => decimals));
    return others.length === 0 && versions.size <= 1 && name.length <= mostLetters ? name : undefined;
  };
}

function plainName({ network, symbol }: Pick<Token, 'network' | 'symbol'>): string {
  return `${cleanSymbol(symbol)}-${network.replace('eip155:', '')}`;
}

/** The first digits of a contract's address. */
function contractIn(asset: string): string {
  return asset.slice(2, 8).toUpperCase();
}

/** A symbol in capitals, digits and hyphens, with a letter at its beginning. */
function cleanSymbol(symbol: string): string {
  const clean = symbol
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
  return /^[A-Z]/.test(clean) ? clean : `T${clean}`;
}
