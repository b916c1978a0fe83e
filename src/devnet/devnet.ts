import path from 'node:path';
import type { Address, Caip2, Hex } from '../base/values/primitives.ts';
import { devnetAddress, devnetKeys } from './accounts.ts';
import { startWeatherApi } from './api.ts';
import { type Chain, startChain } from './chain.ts';
import { deployCheckpointAnchor } from './checkpoint-anchor.ts';
import { type DevnetPrepaid, deployPrepaidContract } from './prepaid-contract.ts';
import { errorCode } from './error-code.ts';
import { startFacilitator } from './facilitator.ts';
import { startModelUpstream } from './model-upstream.ts';
import { deployRegistry } from './registry.ts';
import { type EchoCall, startEchoRunner } from './runner.ts';
import { deployPlainToken, deployTokens } from './token.ts';
import { deployWalletFactory } from './wallet-factory.ts';

/** Loopback ports; 0 means any free one. */
export interface DevnetPorts {
  readonly chain?: number;
  readonly facilitator?: number;
  readonly runner?: number;
  readonly model?: number;
  readonly api?: number;
}

export interface DevnetOptions {
  /** The folder that keeps the chain's state between starts. */
  readonly dir: string;
  /** A port that is named has to be free; a default one gives way to any free port. */
  readonly ports?: DevnetPorts;
  /** The time of a new chain's first block; default: now. */
  readonly chainBeginsAt?: Date;
  /** Sees each call to the runner before it is answered: may fail it by throwing. */
  readonly onCall?: (call: EchoCall) => void;
}

/** A running devnet: all a gateway and its clients need to know. Addresses are lower case. */
export interface Devnet {
  readonly rpcUrl: string;
  readonly chainId: number;
  readonly network: Caip2;
  readonly token: Address;
  readonly secondToken: Address;
  /** Without EIP-3009: it is paid with by Permit2. */
  readonly plainToken: Address;
  readonly payTo: Address;
  /** The registry of permitted callers: `net_contract` of a restricted job. */
  readonly parityContract: Address;
  /** What pays the routing API by signature. */
  readonly prepaid: DevnetPrepaid;
  /** Through which the facilitator deploys wallets before they pay (ERC-6492). */
  readonly walletFactory: Address;
  readonly facilitatorUrl: string;
  /** Where calls are posted, path included. */
  readonly runnerUrl: string;
  /** The secret calls to the runner, and paid requests to the API, are signed with. */
  readonly runnerToken: string;
  /** The model upstream: the base URL that OpenAI's clients take. It has `devnet-small` and `devnet-large`. */
  readonly modelUpstreamUrl: string;
  /** An API for paid routes, without a path. */
  readonly apiUrl: string;
  readonly payerPrivateKey: Hex;
  /** Private keys; both accounts have tokens. The registry permits one of them, and the payer, for service 1. */
  readonly callers: { readonly permitted: Hex; readonly refused: Hex };
  /** Saves the chain and resolves when nothing is left. Safe to call twice. */
  stop(): Promise<void>;
}

const defaultPorts = { chain: 8412, facilitator: 8413, runner: 8414, model: 8415, api: 8416 } as const;
const runnerToken = 'devnet-runner-token-for-development';

/**
 * Starts a chain with three tokens, a caller registry, a prepaid contract and a wallet factory, a facilitator, an echo runner, a model
 * upstream and an API. Nothing of it is safe to expose.
 * @throws when a part does not start; the parts before it are stopped again
 */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const stops: (() => Promise<void>)[] = [];
  const stop = (): Promise<void> => stopAll(stops);
  try {
    const parts = await startParts(options, stops);
    return { ...parts, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts one part after the other, and notes in `stops` how each is stopped. */
async function startParts(
  { dir, ports = {}, chainBeginsAt: beginsAt, onCall }: DevnetOptions,
  stops: (() => Promise<void>)[],
): Promise<Omit<Devnet, 'stop'>> {
  const stateFile = path.join(dir, 'chain.json');
  const chain = await startAt('chain', ports, (port) => startChain({ port, stateFile, beginsAt }));
  stops.push(chain.stop);
  const tokens = await deployTokens(chain);
  const parityContract = await deployRegistry(chain);
  const prepaid = await deployPrepaidContract(chain, tokens.token);
  await deployCheckpointAnchor(chain);
  const plainToken = await deployPlainToken(chain);
  const walletFactory = await deployWalletFactory(chain);
  const facilitator = await startAt('facilitator', ports, (port) =>
    startFacilitator({ ...settlingOn(chain), walletFactories: [walletFactory], port }),
  );
  stops.push(facilitator.close);
  const runner = await startAt('runner', ports, (port) =>
    startEchoRunner({ secret: runnerToken, port, ...(onCall && { onCall }) }),
  );
  stops.push(runner.close);
  const model = await startAt('model', ports, (port) => startModelUpstream({ port }));
  stops.push(model.close);
  const api = await startAt('api', ports, (port) => startWeatherApi({ secret: runnerToken, port }));
  stops.push(api.close);
  return {
    rpcUrl: chain.url,
    chainId: chain.chainId,
    network: `eip155:${chain.chainId}`,
    ...tokens,
    plainToken,
    payTo: devnetAddress('payTo'),
    parityContract,
    prepaid,
    walletFactory,
    facilitatorUrl: facilitator.url,
    runnerUrl: runner.url,
    runnerToken,
    modelUpstreamUrl: model.url,
    apiUrl: api.url,
    payerPrivateKey: devnetKeys.payer,
    callers: { permitted: devnetKeys.permittedCaller, refused: devnetKeys.refusedCaller },
  };
}

/** The last part first: a settlement under way still has its chain. */
async function stopAll(stops: readonly (() => Promise<void>)[]): Promise<void> {
  for (const stop of stops.toReversed()) await stop();
}

/** Another devnet may take a default port between a look at it and our own start: so it is tried, not looked at. */
async function startAt<T>(
  part: keyof typeof defaultPorts,
  ports: DevnetPorts,
  start: (port: number) => Promise<T>,
): Promise<T> {
  const named = ports[part];
  try {
    return await start(named ?? defaultPorts[part]);
  } catch (error) {
    const isTaken = errorCode(error) === 'EADDRINUSE';
    if (named !== undefined || !isTaken) throw error;
    return start(0);
  }
}

function settlingOn(chain: Chain): { rpcUrl: string; chainId: number; privateKey: Hex } {
  return { rpcUrl: chain.url, chainId: chain.chainId, privateKey: devnetKeys.facilitator };
}
