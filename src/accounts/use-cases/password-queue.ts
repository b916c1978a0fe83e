import { AsyncLocalStorage } from 'node:async_hooks';

/** The sender of a password to hash. */
export interface PasswordSender {
  /** Names the client, by its address. */
  readonly client: string;
  /** It has signed in to this account before. */
  readonly isKnownDevice: boolean;
}

/** Limits how many passwords are hashed simultaneously, since each takes a thread, 32 MiB and a tenth of a second. */
export interface PasswordQueue {
  /** The passwords that are hashed within the task are this sender's. The sign-in library does not pass it on. */
  as<T>(sender: PasswordSender, task: () => Promise<T>): Promise<T>;
  /** Runs the work in its sender's turn; undefined, without running it, if that did not come in time. */
  run<T>(work: () => Promise<T>): Promise<T | undefined>;
}

interface Waiting {
  readonly sender: PasswordSender;
  readonly admit: () => void;
}

const servedMs = 60_000;
const unnamed: PasswordSender = { client: '', isKnownDevice: false };

/**
 * A free place goes to the client that had the fewest in the last minute, so that few clients with many passwords wait for each
 * other. Every second place goes to known devices first: clients with many addresses cannot keep out who was here before, nor
 * can devices of accounts that a stranger has made for himself keep out everyone else.
 */
export function createPasswordQueue({
  places,
  waitMs,
  nowMs = () => performance.now(),
}: {
  readonly places: number;
  readonly waitMs: number;
  readonly nowMs?: () => number;
}): PasswordQueue {
  const senders = new AsyncLocalStorage<PasswordSender>();
  const waiting = new Set<Waiting>();
  const served: { readonly client: string; readonly atMs: number }[] = [];
  let free = places;
  let isDevicesTurn = false;

  const take = ({ client }: PasswordSender): void => void served.push({ client, atMs: nowMs() });
  const countServed = (): Map<string, number> => {
    const sinceMs = nowMs() - servedMs;
    const kept = served.findIndex(({ atMs }) => atMs > sinceMs);
    served.splice(0, kept < 0 ? served.length : kept);
    const counts = new Map<string, number>();
    for (const { client } of served) counts.set(client, (counts.get(client) ?? 0) + 1);
    return counts;
  };
  const next = (): Waiting | undefined => {
    const counts = countServed();
    isDevicesTurn = !isDevicesTurn;
    const rank = ({ sender }: Waiting): readonly [number, number] => {
      const count = counts.get(sender.client) ?? 0;
      const device = sender.isKnownDevice ? 0 : 1;
      return isDevicesTurn ? [device, count] : [count, device];
    };
    let first: { readonly entry: Waiting; readonly rank: readonly [number, number] } | undefined;
    for (const entry of waiting) {
      const own = rank(entry);
      const isBefore =
        !first || own[0] < first.rank[0] || (own[0] === first.rank[0] && own[1] < first.rank[1]);
      if (isBefore) first = { entry, rank: own };
    }
    return first?.entry;
  };
  const enter = (sender: PasswordSender): Promise<boolean> => {
    if (free > 0) {
      free -= 1;
      take(sender);
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const entry: Waiting = {
        sender,
        admit() {
          clearTimeout(timer);
          waiting.delete(entry);
          take(sender);
          resolve(true);
        },
      };
      const timer = setTimeout(() => {
        waiting.delete(entry);
        resolve(false);
      }, waitMs);
      waiting.add(entry);
    });
  };
  const leave = (): void => {
    const entry = next();
    if (entry) entry.admit();
    else free += 1;
  };

  return {
    as: (sender, task) => senders.run(sender, task),
    async run(work) {
      if (!(await enter(senders.getStore() ?? unnamed))) return undefined;
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
