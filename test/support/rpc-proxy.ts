import http from 'node:http';
import { listening } from './listening.ts';

export interface RpcQuestion {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A false answer of the node, `{result}` or `{error}`; undefined forwards the request. The node takes as long as a promise does. */
export type Lie = (question: RpcQuestion) => object | undefined | Promise<undefined>;

/** A proxy in front of the real node that gives false answers on request. Closed when the test ends. */
export async function startRpcProxy(rpcUrl: string): Promise<{ readonly url: string; lie: Lie }> {
  const proxy: { url: string; lie: Lie } = { url: '', lie: () => undefined };
  const pass = async (body: string): Promise<string> => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(rpcUrl, { method: 'POST', body, headers })).text();
  };
  const server = http.createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const body = Buffer.concat(await request.toArray()).toString('utf8');
      const question = JSON.parse(body) as RpcQuestion;
      const lie = await proxy.lie(question);
      const text = lie ? JSON.stringify({ jsonrpc: '2.0', id: question.id, ...lie }) : await pass(body);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(text);
    };
    void answer();
  });
  const at = await listening(server);
  proxy.url = at;
  return proxy;
}
