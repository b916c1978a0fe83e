import { toFunctionSelector } from 'viem/utils';
import type { Address } from '../../values/primitives.ts';
import type { ServiceIdType } from '../../values/job.ts';
import {
  abiFalse,
  abiTrue,
  addressWord,
  ethCall,
  hexBytes,
  isExecutionFailure,
  uintWord,
} from './eth-call.ts';
import { unavailable, type RpcAnswer, type RpcUnavailable } from './json-rpc.ts';
import { chainIdCall } from './chain-id.ts';
import { createRpcClients } from './rpc-clients.ts';

/** Whether this caller may call this service, by the contract at the latest block. */
export interface PermissionQuestion {
  readonly rpcUrl: string;
  /** If it is given, an RPC of another chain is `wrong_chain`. */
  readonly chainId?: number | undefined;
  readonly contract: Address;
  readonly serviceId: number;
  /** As the contract's function takes it. */
  readonly serviceIdType: ServiceIdType;
  readonly caller: Address;
}

/**
 * `unavailable` is never a "no". Its causes besides those of the connection: `reverted` (the contract failed),
 * `no_contract` (the address has no code), `malformed` (not an ABI boolean).
 */
export type PermissionAnswer = { readonly kind: 'answer'; readonly permitted: boolean } | RpcUnavailable;

export interface PermissionChecker {
  /**
   * Asks `isPermittedCaller` with the service and the caller. Identical concurrent requests share one call, so an answer may
   * come from a block up to `timeoutMs` before the request.
   * @throws TypeError for an invalid URL
   */
  isPermitted(question: PermissionQuestion): Promise<PermissionAnswer>;
  /** Waits for running calls, then drops the connections. */
  close(): Promise<void>;
}

export interface PermissionCheckerOptions {
  /** Of the whole check: waiting for a free slot, and one retry if the connection failed. */
  readonly timeoutMs?: number;
  /** Most concurrent calls to one RPC URL. */
  readonly maxConcurrent?: number;
}

export function createPermissionChecker(options: PermissionCheckerOptions = {}): PermissionChecker {
  const { timeoutMs = 3_000, maxConcurrent = 64 } = options;
  const clients = createRpcClients({ maxConcurrent });
  const running = new Map<string, Promise<PermissionAnswer>>();
  const rightChains = new Set<string>();

  const ask = async (question: PermissionQuestion): Promise<PermissionAnswer> => {
    const { rpcUrl, chainId } = question;
    const checkedAs = `${chainId} ${rpcUrl}`;
    if (chainId !== undefined && !rightChains.has(checkedAs)) {
      const id = await clients.call(rpcUrl, chainIdCall, timeoutMs);
      if (id.kind === 'unavailable') return id;
      if (id.value !== BigInt(chainId)) return unavailable('wrong_chain');
      rightChains.add(checkedAs);
    }
    return judge(await clients.call(rpcUrl, permissionCall(question), timeoutMs));
  };

  return {
    isPermitted(question) {
      const key = keyOf(question);
      const known = running.get(key);
      if (known !== undefined) return Promise.resolve(known);
      const answer = ask(question).finally(() => running.delete(key));
      running.set(key, answer);
      return answer;
    },
    close: () => clients.close(),
  };
}

/** The URL comes last: only it may contain a space. */
function keyOf({ rpcUrl, chainId, contract, serviceIdType, serviceId, caller }: PermissionQuestion): string {
  return `${contract} ${serviceIdType} ${serviceId} ${caller} ${chainId} ${rpcUrl}`;
}

/** One word of calldata has either type: only the selectors differ. */
const selectors = {
  uint64: toFunctionSelector('isPermittedCaller(uint64,address)'),
  uint256: toFunctionSelector('isPermittedCaller(uint256,address)'),
} as const;

function permissionCall({ contract, serviceIdType, serviceId, caller }: PermissionQuestion) {
  const data =
    `${selectors[serviceIdType]}${uintWord(serviceId).slice(2)}${addressWord(caller).slice(2)}` as const;
  return ethCall({ to: contract, data }, hexBytes);
}

function judge(answer: RpcAnswer<string>): PermissionAnswer {
  if (answer.kind === 'unavailable') {
    return isExecutionFailure(answer.error) ? { ...answer, cause: 'reverted' } : answer;
  }
  if (answer.value === abiTrue) return { kind: 'answer', permitted: true };
  if (answer.value === abiFalse) return { kind: 'answer', permitted: false };
  if (answer.value === '0x') return unavailable('no_contract');
  return unavailable('malformed', new Error(`${answer.value.slice(0, 140)} is not an ABI boolean`));
}
