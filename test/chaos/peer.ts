import { setTimeout as sleep } from 'node:timers/promises';
import {
  answerOf,
  type Exchange,
  type HttpProxy,
  jsonAnswer,
  type Reply,
  startHttpProxy,
} from '../support/http-proxy.ts';
import type { Scope } from './rig.ts';

/**
 * How a peer behaves: as it is; it cuts connections; it is silent, and cuts them when it behaves otherwise; it is late, and does what is
 * asked when it behaves otherwise; it answers with a status and nothing else.
 */
export type Behaviour = 'well' | 'away' | 'silent' | 'late' | number;

/** A peer of the gateways, behind a proxy that decides how it behaves. */
export interface Peer extends HttpProxy {
  /** By the path of a request. Silence lasts until another function is in its place. */
  behave: (path: string) => Behaviour;
}

export const well = (): Behaviour => 'well';
const pollMs = 50;

/**
 * @param target its URL, or the JSON that stands for its answer to a path
 * @param around what else is done with an exchange
 */
export async function startPeer(
  scope: Scope,
  target: string | ((path: string) => unknown),
  around: (exchange: Exchange, reply: () => Promise<Reply>) => Promise<Reply> = (_, reply) => reply(),
): Promise<Peer> {
  const peer = { behave: well as Peer['behave'] };
  const proxy = await startHttpProxy(
    () => String(target),
    (exchange, forward) => {
      const { path } = exchange;
      const reply = async (): Promise<Reply> => {
        const { behave } = peer;
        const behaviour = behave(path);
        if (behaviour === 'silent' || behaviour === 'late')
          while (peer.behave === behave) await sleep(pollMs);
        if (behaviour === 'late') return reply();
        if (behaviour === 'away' || behaviour === 'silent') return 'cut';
        if (behaviour !== 'well') return answerOf(behaviour, 'text/html', '<html></html>');
        return typeof target === 'string' ? forward() : jsonAnswer(target(path));
      };
      return around(exchange, reply);
    },
  );
  const close = (): Promise<void> => {
    // nothing waits any longer
    peer.behave = () => 'away';
    return proxy.close();
  };
  return scope.keep(Object.assign(peer, proxy, { close }));
}
