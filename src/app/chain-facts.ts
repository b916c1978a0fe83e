import { tokenName } from '../base/values/token.ts';
import { bytesToHex } from 'viem/utils';
import type { Config } from '../base/config/config.ts';
import type { Path } from '../base/config/mistakes.ts';
import { spendDomainSeparator } from '../accounts/rules/spend/spend-auth.ts';
import { type Address, chainIdOf } from '../base/values/primitives.ts';
import { type ContractFacts, contractFacts } from '../base/peers/rpc/contract-facts.ts';
import { createRpcClients } from '../base/peers/rpc/rpc-clients.ts';
import {
  type ChainFindings,
  type Finding,
  judge,
  mistake,
  noFindings,
  together,
  unanswered,
} from './chain-findings.ts';
import { checkToken } from './token-facts.ts';

/** Of all questions together. */
const timeoutMs = 3_000;
/** To one RPC: public ones limit bursts. */
const maxConcurrent = 16;

/** An RPC of the configuration, and the questions to it once its chain id is right. */
interface Source {
  readonly rpcUrl: string;
  readonly at: Path;
  /** Undefined if the operator does not name the chain: then only an answer is expected. */
  readonly chainId: number | undefined;
  readonly checks: readonly ((facts: ContractFacts) => Promise<ChainFindings>)[];
  /** The accepted tokens that depend on it, as `network/asset`. */
  readonly tokens: readonly string[];
}

type RpcPath = (chainId: number) => Path;

export interface ConfigFindings extends ChainFindings {
  /** The accepted tokens that a mistake is about, as `network/asset`. */
  readonly wrongTokens: ReadonlySet<string>;
}

/**
 * Asks the chains about all values that the configuration states of them, simultaneously and for at most three seconds: chain ids,
 * contracts, and each accepted token's decimals, symbol and EIP-712 domain. Never throws.
 */
export async function askChains(config: Config): Promise<ConfigFindings> {
  const clients = createRpcClients({ maxConcurrent });
  const endMs = performance.now() + timeoutMs;
  const sources = sourcesOf(config);
  const found = await Promise.all(
    sources.map((source) => checkSource(source, contractFacts(clients, source.rpcUrl, endMs))),
  );
  await clients.close();
  const wrong = sources.flatMap(({ tokens }, index) =>
    (found[index]?.mistakes.length ?? 0) > 0 ? tokens : [],
  );
  const { mistakes, unanswered: open, unchecked } = together(found);
  return {
    mistakes: distinct(mistakes),
    unanswered: distinct(open),
    unchecked: distinct(unchecked),
    wrongTokens: new Set(wrong),
  };
}

async function checkSource(
  { rpcUrl, at, chainId, checks }: Source,
  facts: ContractFacts,
): Promise<ChainFindings> {
  const said = await facts.chainId();
  if (said.kind !== 'known')
    return unanswered(
      at,
      `nothing that needs it is checked yet: ${new URL(rpcUrl).host} does not answer (${said.kind === 'silent' ? said.cause : 'malformed'})`,
    );
  if (chainId !== undefined && said.value !== BigInt(chainId))
    return mistake(at, `serves the chain eip155:${said.value}, and should serve eip155:${chainId}`);
  return together(await Promise.all(checks.map((check) => check(facts))));
}

function sourcesOf(config: Config): Source[] {
  const { jobs, spend, identity, log } = config;
  /** Where the file names the RPC of a chain. */
  const at: RpcPath = (chainId) => config.networks.get(`eip155:${chainId}`)?.at ?? ['networks'];
  return [
    ...(jobs ? [...tokenSources(jobs), ...rateSources(jobs, at), ...policySources(jobs)] : []),
    ...(spend ? [spendSource(spend, at)] : []),
    ...(identity?.siweRpcUrl === undefined
      ? []
      : [
          {
            rpcUrl: identity.siweRpcUrl,
            at: at(identity.siweChainId),
            chainId: identity.siweChainId,
            checks: [],
            tokens: [],
          },
        ]),
    ...(log?.anchors ?? []).flatMap((anchor, index) =>
      anchor.kind === 'chain'
        ? [contractSource(anchor, at(anchor.chainId), ['log', 'anchors', index, 'contract'])]
        : [],
    ),
  ];
}

/** One source a token: if one is wrong, the others are still right. */
function tokenSources({ acceptedTokens, networks }: NonNullable<Config['jobs']>): Source[] {
  return acceptedTokens.flatMap((token, index) => {
    const chosen = networks.get(token.network);
    if (!chosen) return [];
    const check = (facts: ContractFacts): Promise<ChainFindings> =>
      checkToken(facts, token, ['accepted_tokens', index]);
    return [{ ...chosen, chainId: token.chainId, checks: [check], tokens: [tokenName(token)] }];
  });
}

/** Contracts that say rates. */
function rateSources({ acceptedTokens }: NonNullable<Config['jobs']>, at: RpcPath): Source[] {
  return acceptedTokens.flatMap(({ rateTerms }, token) =>
    (rateTerms?.sources ?? []).flatMap((source, index) =>
      source.kind === 'http'
        ? []
        : [
            contractSource(source, at(source.chainId), [
              'accepted_tokens',
              token,
              'rates',
              index,
              'contract',
            ]),
          ],
    ),
  );
}

function policySources({ jobPolicies }: NonNullable<Config['jobs']>): Source[] {
  return [...jobPolicies.values()].flatMap(({ netRpcUrl, netContract, netNetwork }, index) => {
    if (netRpcUrl === undefined || netContract === undefined) return [];
    const chainId = netNetwork && chainIdOf(netNetwork);
    return [
      contractSource(
        { rpcUrl: netRpcUrl, chainId, contract: netContract },
        ['job_policies', index, 'net_rpc_url'],
        ['job_policies', index, 'net_contract'],
      ),
    ];
  });
}

function contractSource(
  {
    rpcUrl,
    chainId,
    contract,
  }: { readonly rpcUrl: string; readonly chainId: number | undefined; readonly contract: Address },
  at: Path,
  contractAt: Path,
): Source {
  const check = (facts: ContractFacts): Promise<ChainFindings> => checkCode(facts, contract, contractAt);
  return { rpcUrl, at, chainId, checks: [check], tokens: [] };
}

function spendSource(spend: NonNullable<Config['spend']>, at: RpcPath): Source {
  const { rpcUrl, chainId, contract, token } = spend;
  const separatorAt = ['spend', 'contract'];
  return {
    rpcUrl,
    at: at(chainId),
    chainId,
    checks: [
      (facts) => checkCode(facts, contract, separatorAt),
      (facts) => checkCode(facts, token, ['spend', 'token']),
      async (facts) =>
        judge(await facts.domainSeparator(contract), separatorAt, 'DOMAIN_SEPARATOR()', (said) =>
          said === bytesToHex(spendDomainSeparator(spend))
            ? noFindings
            : mistake(
                separatorAt,
                'has another EIP-712 domain than ShieldedCredits 1: no spend would be valid',
              ),
        ),
    ],
    tokens: [],
  };
}

async function checkCode(facts: ContractFacts, contract: Address, at: Path): Promise<ChainFindings> {
  return judge(await facts.hasCode(contract), at, 'for its code', (is) =>
    is ? noFindings : mistake(at, `there is no contract at ${contract} on that chain`),
  );
}

/** Without repetitions: several tokens share one RPC. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((found) => [JSON.stringify(found), found])).values()];
}
