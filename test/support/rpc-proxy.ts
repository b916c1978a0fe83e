import { onTestFinished } from 'vitest';
import { jsonAnswer, startHttpProxy } from './http-proxy.ts';

export interface RpcQuestion {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A false answer of the node, `{result}` or `{error}`; undefined forwards the request. The node takes as long as a promise does. */
export type Lie = (question: RpcQuestion) => object | undefined | Promise<undefined>;

/** A proxy in front of the real node that gives false answers on request. Closed when the test ends. */
export async function startRpcProxy(rpcUrl: string): Promise<{ readonly url: string; lie: Lie }> {
  const own: { lie: Lie } = { lie: () => undefined };
  const proxy = await startHttpProxy(
    () => rpcUrl,
    async ({ body }, forward) => {
      const question = JSON.parse(String(body)) as RpcQuestion;
      const lie = await own.lie(question);
      return lie ? jsonAnswer({ jsonrpc: '2.0', id: question.id, ...lie }) : forward();
    },
  );
  onTestFinished(() => proxy.close());
  return Object.assign(own, { url: proxy.url });
}
