import { send } from './guarded-child.ts';

/** Suspends server processes of the database with SIGSTOP. */
export interface Freezer {
  freeze(pid: number, ms: number): void;
  /** Resumes all of them: before the server is stopped, and when the faults end. */
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
