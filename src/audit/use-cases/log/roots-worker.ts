import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { isTrailer, type Roots, takeLines, TreeRoots } from './tree-roots.ts';

const task = 'tollbook: roots of an export';

/** A message to the worker: complete lines in a slot; undefined after the last. */
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

/** Hashes leaves in a separate thread, from shared memory: hashing is a third of the time of verifying. */
export interface RootsWorker {
  /** Gives the worker the first `length` bytes of a slot. */
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
  worker.on('message', (message: WorkerMessage) => {
    if ('slot' in message) {
      busy.get(message.slot)?.resolve();
      busy.delete(message.slot);
      return;
    }
    const { size, root, at } = message.roots;
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
