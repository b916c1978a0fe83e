import { setTimeout as sleep } from 'node:timers/promises';
import { type HttpProxy, startHttpProxy } from '../chaos/http-proxy.ts';
import { startPostgresProxy } from '../chaos/postgres-proxy.ts';

/** How a peer behaves: as it is; it cuts connections; it never answers; it answers with a status and nothing else. */
export type Behaviour = 'well' | 'away' | 'silent' | number;

/** A peer of the gateways, behind a proxy that can be told how it behaves. */
export interface Peer extends HttpProxy {
  /** By the path of a request. */
  behave: (path: string) => Behaviour;
}

export const well = (): Behaviour => 'well';
const pollMs = 50;

export async function startPeer(target: string): Promise<Peer> {
  const peer = { behave: well as Peer['behave'] };
  const proxy = await startHttpProxy(
    () => target,
    async ({ path }, forward) => {
      while (peer.behave(path) === 'silent') await sleep(pollMs);
      const behaviour = peer.behave(path);
      if (behaviour === 'well') return forward();
      if (behaviour === 'away' || behaviour === 'silent') return 'cut';
      return { status: behaviour, headers: {}, body: Buffer.from('') };
    },
  );
  return Object.assign(peer, proxy);
}

/** A gateway's way to the database. */
export interface Wire {
  readonly port: number;
  /** How long the answers of appends are kept back. */
  appendsLateMs: number;
  /** Questions that are no appends reach the database only when this is over. */
  isSilent: boolean;
  block(): void;
  open(): void;
  close(): Promise<void>;
}

export async function startWire(socketPath: () => string): Promise<Wire> {
  const state = { appendsLateMs: 0, isSilent: false };
  const proxy = await startPostgresProxy(socketPath, async (message) => {
    if (!message.appends) {
      while (state.isSilent) await sleep(pollMs);
      return message.pass();
    }
    if (state.appendsLateMs === 0) return message.pass();
    await message.send();
    await sleep(state.appendsLateMs);
    message.deliver();
  });
  const { port } = proxy;
  return Object.assign(state, {
    port,
    block: () => proxy.block(),
    open: () => proxy.open(),
    close: () => proxy.close(),
  });
}
