import type { BrowserContext } from 'playwright-core';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Hex } from '../../src/base/values/primitives.ts';

/** A refusal of a wallet, as EIP-1193 has it. */
export class WalletError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

type Answer = (params: readonly unknown[]) => unknown;

/** A wallet in a browser: it signs with its key and reads the chain. */
export interface TestWallet {
  readonly account: PrivateKeyAccount;
  /** What pages have asked of it, in order. */
  readonly asked: string[];
  /** The chain that it is on, in CAIP-2's decimal. */
  chainId: number;
  /** Chains to which it can change; others are unknown to it (4902). */
  readonly known: Set<number>;
  /** What it answers otherwise, by method. */
  readonly otherwise: Map<string, Answer>;
  /** What it would answer by itself. */
  answer(method: string, params: readonly unknown[]): unknown;
}

export interface TypedData {
  readonly domain: Record<string, unknown>;
  readonly types: Record<string, { name: string; type: string }[]>;
  readonly primaryType: string;
  readonly message: Record<string, unknown>;
}

const injected = `window.ethereum = {
  async request({ method, params = [] }) {
    const { result, error } = await askWallet(method, params);
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  },
};`;

/** Puts a wallet into every page of a browser, by default on the devnet's chain. */
export async function injectWallet(
  context: BrowserContext,
  { account, rpcUrl, chainId = 84_532 }: { account: PrivateKeyAccount; rpcUrl: string; chainId?: number },
): Promise<TestWallet> {
  const wallet: TestWallet = {
    account,
    asked: [],
    chainId,
    known: new Set([84_532, 1]),
    otherwise: new Map(),
    answer: (method, params) => {
      const answer = answers[method];
      if (!answer) throw new WalletError(4200, `no method ${method}`);
      return answer(params);
    },
  };
  const change: Answer = ([chain]) => {
    const id = Number((chain as { chainId: string }).chainId);
    if (!wallet.known.has(id)) throw new WalletError(4902, 'Unrecognized chain ID');
    wallet.chainId = id;
    return null;
  };
  const answers: Record<string, Answer> = {
    eth_requestAccounts: () => [account.address],
    personal_sign: ([message]) => account.signMessage({ message: { raw: message as Hex } }),
    eth_chainId: () => `0x${wallet.chainId.toString(16)}`,
    eth_call: (params) => (wallet.chainId === 84_532 ? askChain(rpcUrl, 'eth_call', params) : '0x'),
    eth_signTypedData_v4: ([, text]) => signTypedData(account, JSON.parse(String(text)) as TypedData),
    wallet_switchEthereumChain: change,
    wallet_addEthereumChain: (params) => {
      wallet.known.add(Number((params[0] as { chainId: string }).chainId));
      return change(params);
    },
  };
  await context.exposeFunction('askWallet', async (method: string, params: readonly unknown[]) => {
    wallet.asked.push(method);
    const otherwise = wallet.otherwise.get(method);
    try {
      return { result: await (otherwise ? otherwise(params) : wallet.answer(method, params)) };
    } catch (error) {
      if (!(error instanceof WalletError)) throw error;
      return { error: { code: error.code, message: error.message } };
    }
  });
  await context.addInitScript(injected);
  return wallet;
}

/** What the wallet signs, with parts of it changed first. */
export function signTypedData(
  account: PrivateKeyAccount,
  { domain, types, primaryType, message }: TypedData,
  changed: { readonly domain?: object; readonly message?: object } = {},
): Promise<string> {
  const { EIP712Domain: _, ...others } = types;
  return account.signTypedData({
    domain: { ...domain, ...changed.domain },
    types: others,
    primaryType,
    message: { ...message, ...changed.message },
  });
}

async function askChain(rpcUrl: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result } = (await response.json()) as { result: unknown };
  return result;
}
