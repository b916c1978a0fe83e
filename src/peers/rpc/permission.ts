import { toFunctionSelector } from 'viem';
import type { Address } from '../../domain/values/primitives.ts';
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
import { createRpcClients } from './rpc-clients.ts';

/** The question: may this caller call this service, as the contract sees it at the latest block. */
export interface PermissionQuestion {
  readonly rpcUrl: string;
  readonly contract: Address;
  readonly serviceId: number;
  readonly caller: Address;
}

/**
 * `unavailable` is never a "no". Its causes, beside those of the way there: `reverted` (the contract failed),
 * `no_contract` (nothing answers at the address), `malformed` (no word that is 0 or 1).
 */
export type PermissionAnswer = { readonly kind: 'answer'; readonly permitted: boolean } | RpcUnavailable;

export interface PermissionChecker {
  /**
   * Asks `isPermittedCaller(uint64,address)`. Identical questions at the same time share one call, so an answer may
   * stem from a block up to `timeoutMs` before the question.
   * @throws TypeError when the URL is none: a mistake of the configuration
   */
  isPermitted(question: PermissionQuestion): Promise<PermissionAnswer>;
  /** Waits for running calls, then drops the connections. */
  close(): Promise<void>;
}

export interface PermissionCheckerOptions {
  /** Over the whole check: waiting for room, and one retry where the connection failed. */
  readonly timeoutMs?: number;
  /** Most calls under way to one RPC. */
  readonly maxConcurrent?: number;
  /** How long an answer is reused, counted from before it was asked for; 0 never. Failures are not reused. */
  readonly cacheSecs?: number;
  /** Monotonic; for the cache only. */
  readonly nowMs?: () => number;
}

export function createPermissionChecker(options: PermissionCheckerOptions = {}): PermissionChecker {
  const { timeoutMs = 3_000, maxConcurrent = 64, cacheSecs = 0, nowMs = () => performance.now() } = options;
  const clients = createRpcClients({ maxConcurrent });
  const running = new Map<string, Promise<PermissionAnswer>>();
  const cache = createAnswerCache(cacheSecs * 1_000);

  const ask = async (key: string, question: PermissionQuestion): Promise<PermissionAnswer> => {
    const askedMs = nowMs();
    const answer = judge(await clients.call(question.rpcUrl, permissionCall(question), timeoutMs));
    if (answer.kind === 'answer') cache.put(key, answer, askedMs);
    return answer;
  };

  return {
    isPermitted(question) {
      const key = keyOf(question);
      const known = cache.get(key, nowMs()) ?? running.get(key);
      if (known !== undefined) return Promise.resolve(known);
      const answer = ask(key, question).finally(() => running.delete(key));
      running.set(key, answer);
      return answer;
    },
    close: () => clients.close(),
  };
}

/** The URL comes last: it alone may hold a blank. */
function keyOf({ rpcUrl, contract, serviceId, caller }: PermissionQuestion): string {
  return `${contract} ${serviceId} ${caller} ${rpcUrl}`;
}

const selector = toFunctionSelector('isPermittedCaller(uint64,address)');

function permissionCall({ contract, serviceId, caller }: PermissionQuestion) {
  const data = `${selector}${uintWord(serviceId).slice(2)}${addressWord(caller).slice(2)}` as const;
  return ethCall({ to: contract, data }, hexBytes);
}

function judge(answer: RpcAnswer<string>): PermissionAnswer {
  if (answer.kind === 'unavailable') {
    return isExecutionFailure(answer.error) ? { ...answer, cause: 'reverted' } : answer;
  }
  if (answer.value === abiTrue) return { kind: 'answer', permitted: true };
  if (answer.value === abiFalse) return { kind: 'answer', permitted: false };
  if (answer.value === '0x') return unavailable('no_contract');
  return unavailable('malformed', new Error(`${answer.value.slice(0, 140)} is no boolean`));
}

interface AnswerCache {
  get(key: string, nowMs: number): PermissionAnswer | undefined;
  put(key: string, answer: PermissionAnswer, askedMs: number): void;
}

/** Callers choose their addresses, so what they can make us remember is bounded. */
const maxCached = 10_000;

/** All answers live equally long, so the oldest stand first and are the first to go. */
function createAnswerCache(lifeMs: number): AnswerCache {
  const answers = new Map<string, { readonly answer: PermissionAnswer; readonly endMs: number }>();
  return {
    get(key, nowMs) {
      const found = answers.get(key);
      return found !== undefined && nowMs < found.endMs ? found.answer : undefined;
    },
    put(key, answer, askedMs) {
      if (lifeMs === 0) return;
      // Set anew, it stands last.
      answers.delete(key);
      answers.set(key, { answer, endMs: askedMs + lifeMs });
      const [oldest] = answers.keys();
      if (answers.size > maxCached && oldest !== undefined) answers.delete(oldest);
    },
  };
}
