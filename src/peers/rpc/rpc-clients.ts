import { createConcurrencyLimit, type ConcurrencyLimit } from '../http/concurrency-limit.ts';
import { createRpc, unavailable, type Rpc, type RpcAnswer, type RpcCall } from './json-rpc.ts';

/** JSON-RPC to all nodes that policies name, each with connections of its own that are kept alive. */
export interface RpcClients {
  /**
   * Answers within `timeoutMs`, waiting in line and one retry included. It is retried only where the connection failed
   * or no answer came; what the node said stands.
   * @throws TypeError when the URL is none: a mistake of the configuration
   */
  call<T>(rpcUrl: string, call: RpcCall<T>, timeoutMs: number): Promise<RpcAnswer<T>>;
  /** Refuses new calls, lets the running ones end, then drops the connections. */
  close(): Promise<void>;
}

interface Client {
  readonly rpc: Rpc;
  readonly gate: ConcurrencyLimit;
}

/** @param maxConcurrent most calls under way to one URL; more wait in line */
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
      return answer ?? unavailable('busy', new Error(`No room for the call within ${timeoutMs} ms`));
    },
    async close() {
      closed = true;
      await Promise.all([...clients.values()].map(({ rpc }) => rpc.close()));
    },
  };
}

/** Most of the time goes to the first try, so that a slow node is heard; the rest is enough for a new connection. */
const firstShare = 2 / 3;

async function callTwice<T>(rpc: Rpc, call: RpcCall<T>, endMs: number): Promise<RpcAnswer<T>> {
  const leftMs = (): number => Math.max(endMs - performance.now(), 1);
  const first = await rpc.call(call, leftMs() * firstShare);
  return isLost(first) ? rpc.call(call, leftMs()) : first;
}

function isLost<T>(answer: RpcAnswer<T>): boolean {
  return answer.kind === 'unavailable' && ['timeout', 'connection'].includes(answer.cause);
}
