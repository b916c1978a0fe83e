import { createConcurrencyLimit, type ConcurrencyLimit } from '../../runtime/concurrency-limit.ts';
import { createRpc, unavailable, type Rpc, type RpcAnswer, type RpcCall } from './json-rpc.ts';

/** JSON-RPC to all nodes that policies name, each with its own keep-alive connections. */
export interface RpcClients {
  /**
   * Answers within `timeoutMs`, queueing and one retry included. It is retried only if the connection failed or timed
   * out; an answer of the node is final.
   * @throws TypeError for an invalid URL
   */
  call<T>(rpcUrl: string, call: RpcCall<T>, timeoutMs: number): Promise<RpcAnswer<T>>;
  /** Refuses new calls, waits for running ones, then drops the connections. */
  close(): Promise<void>;
}

interface Client {
  readonly rpc: Rpc;
  readonly gate: ConcurrencyLimit;
}

/** @param maxConcurrent most concurrent calls to one URL; further ones are queued */
export function createRpcClients({ maxConcurrent }: { readonly maxConcurrent: number }): RpcClients {
  const clients = new Map<string, Client>();
  let closed = false;
  const clientOf = (rpcUrl: string): Client => {
    const client = clients.get(rpcUrl) ?? {
      rpc: createRpc(rpcUrl),
      gate: createConcurrencyLimit(maxConcurrent),
    };
    clients.set(rpcUrl, client);
    return client;
  };

  return {
    async call(rpcUrl, call, timeoutMs) {
      if (closed) return unavailable('closed');
      const { rpc, gate } = clientOf(rpcUrl);
      const endMs = performance.now() + timeoutMs;
      const answer = await gate.run(timeoutMs, () => callTwice(rpc, call, endMs));
      return answer ?? unavailable('busy', new Error(`No free slot for the call within ${timeoutMs} ms`));
    },
    async close() {
      closed = true;
      await Promise.all([...clients.values()].map(({ rpc }) => rpc.close()));
    },
  };
}

/** The first attempt gets most of the time, for slow nodes; the rest suffices for a new connection. */
const firstShare = 2 / 3;

async function callTwice<T>(rpc: Rpc, call: RpcCall<T>, endMs: number): Promise<RpcAnswer<T>> {
  const remainingMs = (): number => Math.max(endMs - performance.now(), 1);
  const first = await rpc.call(call, remainingMs() * firstShare);
  return isLost(first) ? rpc.call(call, remainingMs()) : first;
}

function isLost<T>(answer: RpcAnswer<T>): boolean {
  return answer.kind === 'unavailable' && ['timeout', 'connection'].includes(answer.cause);
}
