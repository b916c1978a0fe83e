import type { TypedDataDefinition } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { isHex, stringToHex } from 'viem/utils';
import { z } from 'zod';
import type { Address, Hex } from '../../base/values/primitives.ts';

/** Whose key signs, and on which chain. */
export interface WalletAccount {
  readonly privateKey: Hex;
  readonly address: Address;
  readonly rpcUrl: string;
  readonly chainId: number;
}

/** What a provider's `request` resolves to, or the error that it rejects with (EIP-1193, EIP-1474). */
export type CallAnswer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string } };

const invalidParams = -32_602;
const internalError = -32_603;
const unauthorized = 4_100;
const unsupported = 4_200;
const rpcTimeoutMs = 5_000;

const walletCall = z.strictObject({ method: z.string().max(64), params: z.array(z.unknown()).max(4) });
type WalletCall = z.infer<typeof walletCall>;

/** What the chain's node answers. Nothing that sends or signs is among it. */
const reads: ReadonlySet<string> = new Set([
  'eth_blockNumber',
  'eth_call',
  'eth_getBalance',
  'eth_getCode',
  'eth_getTransactionByHash',
  'eth_getTransactionReceipt',
]);

const typedData = z.object({
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  primaryType: z.string(),
  domain: z.looseObject({ chainId: z.union([z.string(), z.number()]).optional() }),
  message: z.looseObject({}),
});

/** Answers requests to a page's provider that the person has confirmed there. */
export async function answerCall(account: WalletAccount, body: unknown): Promise<CallAnswer> {
  const call = walletCall.safeParse(body);
  if (!call.success)
    return failure(invalidParams, 'a call has a method and a list of at most four parameters');
  const { method, params } = call.data;
  if (method === 'personal_sign') return signText(account, params);
  if (method === 'eth_signTypedData_v4') return signTypedData(account, params);
  if (reads.has(method)) return askNode(account, call.data);
  return failure(unsupported, `the development wallet does not support ${method}`);
}

async function signText(account: WalletAccount, params: readonly unknown[]): Promise<CallAnswer> {
  const [message, signer] = params;
  if (typeof message !== 'string') return failure(invalidParams, 'personal_sign takes a text and an address');
  if (!isOwn(account, signer)) return notOurs();
  const raw = isHex(message) ? message : stringToHex(message);
  return { result: await privateKeyToAccount(account.privateKey).signMessage({ message: { raw } }) };
}

async function signTypedData(account: WalletAccount, params: readonly unknown[]): Promise<CallAnswer> {
  const [signer, given] = params;
  if (!isOwn(account, signer)) return notOurs();
  const data = typedData.safeParse(typeof given === 'string' ? parsed(given) : given);
  if (!data.success) return failure(invalidParams, 'the second parameter is not typed data (EIP-712)');
  const { chainId } = data.data.domain;
  if (chainId !== undefined && Number(chainId) !== account.chainId)
    return failure(
      invalidParams,
      `the data is for chain ${chainId}, and the wallet is on ${account.chainId}`,
    );
  try {
    const definition = data.data as unknown as TypedDataDefinition;
    return { result: await privateKeyToAccount(account.privateKey).signTypedData(definition) };
  } catch (error) {
    return failure(invalidParams, `the typed data cannot be signed: ${messageOf(error)}`);
  }
}

async function askNode({ rpcUrl }: WalletAccount, { method, params }: WalletCall): Promise<CallAnswer> {
  try {
    const response = await fetch(rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(rpcTimeoutMs),
    });
    const { result, error } = (await response.json()) as { result?: unknown; error?: { message?: string } };
    return error ? failure(internalError, String(error.message)) : { result };
  } catch (error) {
    return failure(internalError, `the devnet's chain did not answer: ${messageOf(error)}`);
  }
}

function isOwn({ address }: WalletAccount, given: unknown): boolean {
  return typeof given === 'string' && given.toLowerCase() === address;
}

function notOurs(): CallAnswer {
  return failure(unauthorized, 'this account is not of the development wallet');
}

function failure(code: number, message: string): CallAnswer {
  return { error: { code, message } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error);
}
