import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { createTestClient, http, publicActions } from 'viem';

/** The clocks of a devnet that makes its past: of this process, of the database and of the chain, always the same. */
export interface DemoClock {
  /** Sets all three to a time that is not before the one they have. Nothing may be under way. */
  moveTo(at: Date): Promise<void>;
  /** Sets all three to the machine's time, for good. */
  end(): Promise<void>;
}

const realDate = Date;
const clockFile = new URL('../../migrations/functions/clock.sql', import.meta.url);

/**
 * Sets this process's clock back to a time from which it runs. Timers run as usual. For a process that makes the past of a devnet
 * and ends then: everything in it, the gateway too, has this clock.
 */
export function takeProcessClock(at: Date): { set(to: Date): void; readonly aheadMs: () => number } {
  let aheadMs = at.getTime() - realDate.now();
  // a class, since programs make dates with `new`
  globalThis.Date = class extends realDate {
    constructor(...args: unknown[]) {
      if (args.length === 0) super(realDate.now() + aheadMs);
      else super(...(args as [number]));
    }
    // also of dates that were made before
    static override [Symbol.hasInstance](value: unknown): boolean {
      return value instanceof realDate;
    }
    static override now(): number {
      return realDate.now() + aheadMs;
    }
  } as DateConstructor;
  return {
    set: (to) => void (aheadMs = to.getTime() - realDate.now()),
    aheadMs: () => aheadMs,
  };
}

/**
 * Gives a database the clock of this process. Its ledger reads the time by one function, which the owner of the database
 * replaces here; only {@link DemoClock.end} puts the right one back.
 */
export async function setDatabaseClock(databaseUrl: string, aheadMs: number): Promise<void> {
  await asOwner(
    databaseUrl,
    `create or replace function tollbook.clock() returns timestamptz language sql volatile
     as $$ select clock_timestamp() + interval '${Math.round(aheadMs)} milliseconds' $$`,
  );
}

export function createDemoClock(
  clock: ReturnType<typeof takeProcessClock>,
  { databaseUrl, rpcUrl }: { readonly databaseUrl: string; readonly rpcUrl: string },
): DemoClock {
  const chain = createTestClient({ mode: 'anvil', transport: http(rpcUrl) }).extend(publicActions);
  const moveChain = async (toMs: number): Promise<void> => {
    const { timestamp } = await chain.getBlock();
    const seconds = Math.floor(toMs / 1_000) - Number(timestamp);
    if (seconds > 0) await chain.increaseTime({ seconds });
    // a payment is compared with the time of the newest block
    await chain.mine({ blocks: 1 });
  };
  return {
    async moveTo(at) {
      clock.set(at);
      await setDatabaseClock(databaseUrl, clock.aheadMs());
      await moveChain(at.getTime());
    },
    async end() {
      clock.set(new realDate());
      // its first statement: rights stay unchanged
      const [text = ''] = /create or replace function[^;]*;/.exec(await readFile(clockFile, 'utf8')) ?? [];
      await asOwner(databaseUrl, text);
      await moveChain(realDate.now());
    },
  };
}

async function asOwner(databaseUrl: string, text: string): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
