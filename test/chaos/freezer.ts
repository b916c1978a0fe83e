import { send } from './guarded-child.ts';

/** Stops processes of the database for a while. */
export interface Freezer {
  freeze(pid: number, ms: number): void;
  /** All of them go on: before the server is asked to end, and when the misfortune is over. */
  thaw(): void;
}

export function createFreezer(): Freezer {
  const frozen = new Map<number, NodeJS.Timeout>();
  const thawOne = (pid: number): void => {
    clearTimeout(frozen.get(pid));
    frozen.delete(pid);
    send(pid, 'SIGCONT');
  };
  return {
    freeze(pid, ms) {
      send(pid, 'SIGSTOP');
      frozen.set(
        pid,
        setTimeout(() => thawOne(pid), ms),
      );
    },
    thaw() {
      for (const pid of frozen.keys()) thawOne(pid);
    },
  };
}
