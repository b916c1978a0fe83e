/**
 * A chain, its facilitator behind a delay, and payers with money who have approved Permit2. Runs as its own process and reports the address of the
 * delayed facilitator to its parent; any message is answered with the rest. `--verify-ms` and `--settle-ms`: what is added to an answer on average,
 * from half of it to one and a half.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { privateKeyToAddress } from 'viem/accounts';
import type { Hex } from '../../src/base/values/primitives.ts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { startChain } from '../../src/devnet/chain.ts';
import { startFacilitator } from '../../src/devnet/facilitator.ts';
import { approvePermit2, deployTokens, mint } from '../../src/devnet/token.ts';
import { startHttpProxy } from '../../test/support/http-proxy.ts';

/** What a parent gets to know. */
export interface BenchDevnet {
  readonly rpcUrl: string;
  readonly chainPid: number;
  readonly token: Hex;
  readonly payers: readonly Hex[];
}

const { values: flags } = parseArgs({
  options: {
    payers: { type: 'string', default: '64' },
    'verify-ms': { type: 'string', default: '0' },
    'settle-ms': { type: 'string', default: '0' },
  },
});
const delaysMs: Readonly<Record<string, number>> = {
  '/verify': Number(flags['verify-ms']),
  '/settle': Number(flags['settle-ms']),
};
const atoms = 10n ** 15n;

const chain = await startChain();
const { token } = await deployTokens(chain);
const { url } = await startFacilitator({
  rpcUrl: chain.url,
  chainId: chain.chainId,
  privateKey: devnetKeys.facilitator,
});
const payers = Array.from(
  { length: Number(flags.payers) },
  (): Hex => `0x${randomBytes(32).toString('hex')}`,
);
await Promise.all(payers.map((key) => mint(chain, token, privateKeyToAddress(key), atoms)));
await Promise.all(payers.map((key) => approvePermit2(chain, token, key)));
const proxy = await startHttpProxy(
  () => url,
  async ({ path }, forward) => {
    await sleep((delaysMs[path] ?? 0) * (0.5 + Math.random()));
    return forward();
  },
);
const told: BenchDevnet = { rpcUrl: chain.url, chainPid: chain.pid, token, payers };
process.on('message', () => process.send?.(told));
process.on('disconnect', () => process.exit());
process.send?.({ url: proxy.url });
