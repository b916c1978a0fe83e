import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { isTrailer, type Roots, takeLines, TreeRoots } from './tree-roots.ts';

const task = 'tollbook: roots of an export';

/** What goes to the worker: lines in a slot, or that there are no more. */
interface LinesInSlot {
  readonly slot: number;
  readonly length: number;
}

interface Setup {
  readonly task: string;
  readonly slots: readonly SharedArrayBuffer[];
  readonly wanted: readonly number[];
}

type WorkerMessage =
  | { readonly slot: number }
  | { readonly roots: { size: number; root: Uint8Array; at: Map<number, Uint8Array> } };

/** Hashes in a thread of its own, from memory that both threads see: it is a third of the work of verifying. */
export interface RootsWorker {
  /** Hands over the lines at the beginning of a slot. */
  give(slot: number, length: number): void;
  /** Resolves when the slot may be written again. */
  free(slot: number): Promise<void>;
  finish(): Promise<Roots>;
  stop(): Promise<void>;
}

export function startRootsWorker(
  slots: readonly SharedArrayBuffer[],
  wanted: readonly number[],
): RootsWorker {
  const setup: Setup = { task, slots, wanted };
  const worker = new Worker(new URL(import.meta.url), { workerData: setup });
  const busy = new Map<number, PromiseWithResolvers<void>>();
  const roots = Promise.withResolvers<Roots>();
  worker.on('message', (said: WorkerMessage) => {
    if ('slot' in said) {
      busy.get(said.slot)?.resolve();
      busy.delete(said.slot);
      return;
    }
    const { size, root, at } = said.roots;
    const entries = [...at].map(([place, hash]): [number, Buffer] => [place, Buffer.from(hash)]);
    roots.resolve({ size, root: Buffer.from(root), at: new Map(entries) });
  });
  worker.on('error', (error) => {
    roots.reject(error);
    for (const { reject } of busy.values()) reject(error);
  });
  roots.promise.catch(() => {});
  return {
    give(slot, length) {
      busy.set(slot, Promise.withResolvers());
      worker.postMessage({ slot, length } satisfies LinesInSlot, []);
    },
    free: (slot) => busy.get(slot)?.promise ?? Promise.resolve(),
    finish() {
      worker.postMessage(undefined, []);
      return roots.promise;
    },
    async stop() {
      await worker.terminate();
    },
  };
}

function work({ slots, wanted }: Setup): void {
  const roots = new TreeRoots(wanted);
  const buffers = slots.map((slot) => Buffer.from(slot));
  const port = parentPort;
  port?.on('message', (given: LinesInSlot | undefined) => {
    if (given === undefined) {
      const { size, root, at } = roots;
      port.postMessage({ roots: { size, root, at } } satisfies WorkerMessage);
      port.close();
      return;
    }
    const { slot, length } = given;
    takeLines(buffers[slot]?.subarray(0, length) ?? Buffer.alloc(0), (line) => {
      if (!isTrailer(line)) roots.append(line);
    });
    port.postMessage({ slot } satisfies WorkerMessage);
  });
}

const setup = workerData as Setup | null;
if (!isMainThread && setup?.task === task) work(setup);
