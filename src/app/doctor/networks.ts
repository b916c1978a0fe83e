import type { Config } from '../../base/config/config.ts';
import { formatPath, type Path } from '../../base/config/mistakes.ts';
import type { NetworkConfig } from '../../base/config/networks.ts';
import { type Caip2, chainIdOf } from '../../base/values/primitives.ts';
import { createChain } from '../../payments/peers/chain/chain.ts';
import { askChains } from '../chain-facts.ts';
import { type Finding, located } from '../chain-findings.ts';
import { askRates } from '../rate-findings.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

const timeoutMs = 3_000;
/** Every supported chain has a block each few seconds. */
const noticedSecs = 60;
/** The gateway then believes a past that clients have left. */
const staleSecs = 300;

/** Every RPC of `[[networks]]`: its chain, how old its last block is, and whether it names final blocks. */
export async function checkNetworks({ networks }: Config): Promise<readonly CheckResult[]> {
  const asked = [...networks].flatMap(([id, network]) => (network ? [checkNetwork(id, network)] : []));
  return (await Promise.all(asked)).flat();
}

async function checkNetwork(id: Caip2, { rpcUrl, at }: NetworkConfig): Promise<readonly CheckResult[]> {
  const what = `network ${id}`;
  const key = formatPath(at);
  const { host } = new URL(rpcUrl);
  const chain = createChain({ chainId: chainIdOf(id) ?? 0, rpcUrl, timeoutMs });
  try {
    const latest = await chain.latestBlock();
    if (latest.kind === 'unavailable')
      return latest.cause === 'wrong_chain'
        ? [fail(what, `${host} serves another chain`, `Set ${key} to an RPC of ${id}, or correct its id.`)]
        : [
            fail(
              what,
              `${host} does not answer (${latest.cause})`,
              `Correct ${key}, or let this machine reach it.`,
            ),
          ];
    const { number, timestampSecs } = latest.block;
    const ageSecs = Math.max(0, Math.round(Date.now() / 1_000 - timestampSecs));
    const found = `${host} serves it, with block ${number} of ${ageSecs} s ago`;
    const late = `Set ${key} to a node that has caught up with its chain, and check this machine's clock.`;
    if (ageSecs > staleSecs) return [fail(what, found, late)];
    if (ageSecs > noticedSecs) return [warn(what, found, late)];
    const final = await chain.finalizedBlock();
    if (final.kind === 'answer') return [ok(what, found)];
    return [
      fail(
        what,
        `${host} names no final block (${final.cause})`,
        `Set ${key} to a node that answers eth_getBlockByNumber "finalized": otherwise no unknown settlement ends.`,
      ),
    ];
  } finally {
    await chain.close();
  }
}

/** What the configuration says of tokens and contracts, compared with the chains. */
export async function checkTokens(config: Config): Promise<readonly CheckResult[]> {
  const found = await askChains(config);
  // each network has a line of its own
  const ofNetworks = new Set(
    [...config.networks.values()].map((network) => network && formatPath(network.at)),
  );
  const isOwn = ({ at }: Finding): boolean => !ofNetworks.has(formatPath(at));
  const what = 'tokens and contracts';
  const mistakes = found.mistakes.filter(isOwn).map((finding) => {
    const { path, file, line } = located(config, finding);
    const place = line === undefined ? file : `${file}:${line}`;
    return fail(what, textOf(finding), `Correct ${path} in ${place}: payments would be refused.`);
  });
  const unanswered = found.unanswered
    .filter(isOwn)
    .map((finding) =>
      warn(what, textOf(finding), 'Run this again; if it stays so, name another RPC in [[networks]].'),
    );
  const unchecked = found.unchecked.map((finding) =>
    warn(
      what,
      textOf(finding),
      `Compare ${formatPath(finding.at)} with a block explorer, and with what the issuer of the token publishes.`,
    ),
  );
  const results = [...mistakes, ...unanswered, ...unchecked];
  if (results.length > 0 || found.mistakes.length + found.unanswered.length > 0) return results;
  return [ok(what, 'the chains say the same as the configuration')];
}

/** The sources of rates, each asked once. */
export async function checkRates(config: Config): Promise<readonly CheckResult[]> {
  const what = 'rates';
  const { lines, warnings } = await askRates(config);
  const results = warnings.map((finding) =>
    isOfToken(finding.at)
      ? fail(what, textOf(finding), 'Repair its sources, which the other lines name (docs/rates.md).')
      : warn(
          what,
          textOf(finding),
          `Correct ${formatPath(finding.at)}, or let this machine reach it (docs/rates.md).`,
        ),
  );
  if (results.length > 0) return results;
  return lines.filter((line) => !line.startsWith(' ')).map((line) => ok(what, line));
}

/** Not of one source. */
function isOfToken(at: Path): boolean {
  return at.at(-1) === 'rates';
}

function textOf({ at, message }: Finding): string {
  return `${formatPath(at)} ${message}`;
}
