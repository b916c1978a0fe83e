import { setTimeout as sleep } from 'node:timers/promises';
import { type PostgresProxy, startPostgresProxy } from '../chaos/postgres-proxy.ts';
import type { Scope } from '../chaos/rig.ts';

/** A gateway's way to the database. */
export interface Wire extends PostgresProxy {
  /** How long the answers of appends are kept back. */
  appendsLateMs: number;
  /** Questions that are no appends reach the database only when this is over. */
  isSilent: boolean;
}

const pollMs = 50;

export async function startWire(scope: Scope, socketPath: () => string): Promise<Wire> {
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
  return scope.keep(Object.assign(state, proxy));
}
