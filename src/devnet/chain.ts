import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTestClient, http, publicActions } from 'viem';
import type { Address } from '../base/values/primitives.ts';
import {
  exactProxyAddress,
  permit2Address,
  uptoProxyAddress,
} from '../payments/rules/schemes/permit2/signature-transfer.ts';
import { exactPermit2Proxy, multicall3, permit2Contract, uptoPermit2Proxy } from './contracts.ts';
import { type GuardedProcess, startGuarded } from './guarded-process.ts';
import { PortTakenError, freePort, isPortFree } from './ports.ts';

export interface ChainOptions {
  /** Loopback port; 0 or left out means any free one. */
  readonly port?: number;
  /** Where the chain is kept, saved every second and at the end. Left out, it is forgotten. */
  readonly stateFile?: string;
  /** Default: Base Sepolia's, so that x402 version 1 clients know the network's name. */
  readonly chainId?: number;
  /** The time of the first block of a new chain, which continues from there; default: now. */
  readonly beginsAt?: Date | undefined;
}

export interface Chain {
  readonly url: string;
  readonly chainId: number;
  /** anvil's process. */
  readonly pid: number;
  /** Saves the state and resolves when the process has ended. Safe to call twice. */
  readonly stop: () => Promise<void>;
}

/** The address of Multicall3 on every real chain. */
export const multicall3Address: Address = '0xca11bde05977b3631167028862be2a173976ca11';

/** Contracts that every real chain has at these addresses. Ours behave as those do, and are not their bytecode. */
const canonical = [
  [multicall3Address, multicall3],
  [permit2Address, permit2Contract],
  [exactProxyAddress, exactPermit2Proxy],
  [uptoProxyAddress, uptoPermit2Proxy],
] as const;

const defaultChainId = 84_532;
const freePortAttempts = 5;

/**
 * Starts a local chain. Transactions are mined as they come and a block comes every second, so that `finalized`
 * trails by two blocks. It ends, saving its state, when this process does, SIGKILL included.
 * @throws PortTakenError; or another error when the state file is damaged, or there is no anvil for this platform
 */
export async function startChain(options: ChainOptions = {}): Promise<Chain> {
  const { port = 0, stateFile, chainId = defaultChainId, beginsAt } = options;
  const command = anvilBinary();
  if (stateFile !== undefined) prepareStateFile(path.resolve(stateFile));
  const { anvil, url } = await launch(command, port, chainArgs(chainId, stateFile, beginsAt));
  anvil.release();
  const client = createTestClient({ mode: 'anvil', transport: http(url) });
  for (const [address, { deployedBytecode }] of canonical)
    await client.setCode({ address, bytecode: deployedBytecode });
  return { url, chainId, pid: anvil.pid, stop: () => anvil.stop() };
}

function anvilBinary(): string {
  // The only anvil package that is installed; see package.json for why it is the platform's own.
  const name = '@foundry-rs/anvil-linux-amd64';
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/anvil`);
  } catch (cause) {
    const platform = `${process.platform}-${process.arch}`;
    throw new Error(`No local chain on ${platform}: the optional package ${name} is not installed`, {
      cause,
    });
  }
}

function chainArgs(chainId: number, stateFile: string | undefined, beginsAt: Date | undefined): string[] {
  const args = ['--host', '127.0.0.1', '--chain-id', String(chainId), '--silent'];
  if (beginsAt) args.push('--timestamp', String(Math.floor(beginsAt.getTime() / 1_000)));
  args.push('--block-time', '1', '--mixed-mining', '--slots-in-an-epoch', '1');
  if (stateFile !== undefined) args.push('--state', path.resolve(stateFile), '--state-interval', '1');
  return args;
}

/** anvil does not write the file in one step, so a killed machine can leave half of one. */
function prepareStateFile(file: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  if (!existsSync(file)) return;
  chmodSync(file, 0o600);
  try {
    JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new Error(
      `The chain's state in ${file} is damaged: remove it, and what relies on it, to begin anew`,
      { cause },
    );
  }
}

/** A given port has to be free; with 0 another one is tried when someone took the free port first. */
async function launch(
  command: string,
  port: number,
  args: string[],
): Promise<{ anvil: GuardedProcess; url: string }> {
  if (port !== 0 && !(await isPortFree(port))) throw new PortTakenError(port);
  for (let attempt = 1; ; attempt++) {
    const chosen = port === 0 ? await freePort() : port;
    // anvil creates it if it needs it, the guard removes it: it never exists without a guard.
    const scratchDir = path.join(tmpdir(), `tollbook-chain-${randomUUID()}`);
    const portArgs = ['--port', String(chosen), '--cache-path', scratchDir];
    const anvil = await startGuarded({
      command,
      args: [...args, ...portArgs],
      stopSignal: 'TERM',
      scratchDir,
    });
    const url = `http://127.0.0.1:${chosen}`;
    if (await answers(anvil, url)) return { anvil, url };
    const isTaken = /address already in use/i.test(anvil.log());
    if (!isTaken) throw new Error(`anvil did not start: ${anvil.log()}`);
    if (port !== 0 || attempt === freePortAttempts) throw new PortTakenError(chosen);
  }
}

const askEveryMs = 10;
const startTimeoutMs = 20_000;

/** Whether the chain came up; false when its process ended instead. */
async function answers(anvil: GuardedProcess, url: string): Promise<boolean> {
  const client = createTestClient({ mode: 'anvil', transport: http(url, { retryCount: 0 }) }).extend(
    publicActions,
  );
  const deadline = performance.now() + startTimeoutMs;
  while (!anvil.hasExited()) {
    const isUp = await client.getChainId().then(
      () => true,
      () => false,
    );
    if (isUp) return !anvil.hasExited();
    if (performance.now() > deadline) {
      await anvil.stop();
      throw new Error(`anvil did not answer within ${startTimeoutMs} ms: ${anvil.log()}`);
    }
    await sleep(askEveryMs);
  }
  await anvil.exited();
  return false;
}
