import { generatePrivateKey } from 'viem/accounts';
import { createTestClient, http } from 'viem';
import { afterAll, beforeAll, expect } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import {
  commitmentOf,
  prepaidContractAddress,
  deployPrepaidContract,
  fundPrepaidAccount,
} from '../../src/devnet/prepaid-contract.ts';
import type { ConstantChanges } from '../../src/base/config/constants.ts';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import type { Hex } from '../../src/base/values/primitives.ts';
import type { SpendAuth } from '../../src/accounts/rules/spend/spend-auth.ts';
import {
  createPrepaidContract,
  type PrepaidContract,
} from '../../src/chat/peers/prepaid/prepaid-contract.ts';
import { readEvents } from '../../src/ledger/store/streams.ts';
import type { TestDatabase } from './database.ts';
import { type TestChain, useChain } from './devnet.ts';
import { networkOf } from './gateway.ts';
import { paidModel, type ChatGateway, type ChatGatewayOptions, startChatGateway } from './chat-gateway.ts';
import { signSpend, spendHeader } from './spend.ts';

export interface SpendAccount {
  readonly key: Hex;
  readonly commitment: Hex;
  /** A spend of it, of a million atoms where nothing else is said. */
  sign(change?: Partial<Omit<SpendAuth, 'signature'>>): Promise<SpendAuth>;
}

interface SpendGatewayOptions extends ChatGatewayOptions {
  readonly spend?: Readonly<Record<string, string>>;
  readonly times?: ConstantChanges['spend'];
  readonly rpcUrl?: string;
}

export interface SpendChain {
  readonly chain: TestChain;
  account(amountAtoms?: bigint): Promise<SpendAccount>;
  /** A gateway that is paid by spends; `spend` changes keys of its table, `times` how long it waits, `rpcUrl` is that of the chain. */
  gateway(options?: SpendGatewayOptions): Promise<ChatGateway>;
  /** The contract, by a key that is not the gateway's. */
  withCredits<T>(use: (credits: PrepaidContract) => Promise<T>): Promise<T>;
  /** From here on nothing gets into a block; then, once it resumes, what comes does at once, and a block every second. */
  stall(): Promise<{ resume(): Promise<void> }>;
}

/** A chain with the credits contract, for all tests of one file. */
export function useSpendChain(): SpendChain {
  const chain = useChain();
  beforeAll(async () => void (await deployPrepaidContract(chain.chain, chain.token)));
  const node = () => createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) });
  let ticks: NodeJS.Timeout | undefined;
  let lastTick: Promise<unknown> = Promise.resolve();
  const tick = (): void => {
    lastTick = node()
      .mine({ blocks: 1 })
      .catch(() => undefined);
  };
  afterAll(async () => {
    clearInterval(ticks);
    await lastTick;
  });
  const domain = () => ({ chainId: chain.chain.chainId, contract: prepaidContractAddress });
  return {
    chain,
    async account(amountAtoms = 100_000_000n) {
      const key = generatePrivateKey();
      await fundPrepaidAccount(chain.chain, {
        prepaidContract: prepaidContractAddress,
        token: chain.token,
        spendingPrivateKey: key,
        amountAtoms,
      });
      return {
        key,
        commitment: commitmentOf(key),
        sign: (change = {}) => signSpend(domain(), key, change),
      };
    },
    gateway: ({
      spend = {},
      times = {},
      rpcUrl = chain.rpcUrl,
      tables = '',
      env = {},
      constants = {},
      ...options
    } = {}) =>
      startChatGateway({
        ...options,
        constants: { ...constants, spend: { authorizeTimeoutMs: 10_000, ...times } },
        tables: `${networkOf('eip155:84532', rpcUrl)}${spendTable(chain, spend)}\n${tables}`,
        env: { OPERATOR_KEY: devnetKeys.operator, ...env },
      }),
    async stall() {
      clearInterval(ticks);
      await lastTick;
      await node().setAutomine(false);
      await node().setIntervalMining({ interval: 0 });
      return {
        async resume() {
          await node().setAutomine(true);
          await node().mine({ blocks: 1 });
          clearInterval(ticks);
          ticks = setInterval(tick, 1_000);
        },
      };
    },
    async withCredits(use) {
      const credits = createPrepaidContract({
        ...domain(),
        rpcUrl: chain.rpcUrl,
        privateKey: devnetKeys.secondSpare,
        timeoutMs: 20_000,
      });
      try {
        return await use(credits);
      } finally {
        await credits.close();
      }
    },
  };
}

function spendTable(chain: TestChain, change: Readonly<Record<string, string>>): string {
  const table: Record<string, string> = {
    network: '"eip155:84532"',
    contract: `"${prepaidContractAddress}"`,
    token: `"${chain.token}"`,
    operator_key: '"env:OPERATOR_KEY"',
    service_id: '1',
    min_charge: '"1000"',
    max_spend: '"50000000"',
    atoms_per_unit: '"1000000"',
    atoms_per_native_unit: '"1000"',
    max_fee_per_gas_wei: '"1000000000000"',
    ...change,
  };
  const lines = Object.entries(table).map(([key, value]) => `${key} = ${value}`);
  return `[spend]\n${lines.join('\n')}`;
}

/** A client's own, by which it can be told from strangers who know the spend. */
export const secret = 'W4k9xQ-2fT7_bn6H';

export const says = (content: string) => [{ role: 'user', content }] as const;

/** A request for the model that costs; different words make another body. */
export const chat = (words = 'one two three', more: object = {}) => ({
  model: paidModel,
  messages: says(words),
  max_tokens: 100,
  ...more,
});

/** Asks for a completion that a spend pays for. `paymentSecret` binds the spend to the request only for its sender. */
export function ask(
  gateway: ChatGateway,
  auth: SpendAuth,
  body: unknown = chat(),
  paymentSecret?: string,
): Promise<Response> {
  const header = { 'x-payment-signature': spendHeader(auth) };
  return gateway.post(
    body,
    paymentSecret === undefined ? header : { ...header, 'x-payment-secret': paymentSecret },
  );
}

export async function codeOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error: { code: string } };
  return `${response.status} ${error.code}`;
}

/** The events of the spends of one commitment, oldest first. */
export async function spendEventsOf(
  { db }: TestDatabase,
  auth: Pick<SpendAuth, 'commitment'>,
): Promise<RecordedEvent[]> {
  const events = await readEvents(db, 0, 10_000);
  return events.filter(({ data }) => 'commitment' in data && data.commitment === auth.commitment);
}

export async function expectSpendEvents(
  gateway: ChatGateway,
  auth: Pick<SpendAuth, 'commitment'>,
  types: readonly string[],
): Promise<void> {
  const events = await spendEventsOf(gateway.database, auth);
  expect(events.map(({ type }) => type)).toEqual(types);
}
