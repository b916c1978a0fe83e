import { type FileHandle, open } from 'node:fs/promises';
import { type RootsWorker, startRootsWorker } from '../log/roots-worker.ts';
import { takeLines } from '../log/tree-roots.ts';
import type { ExportVerifier, Verdict } from './verify.ts';

/** Far longer than any event. */
const slotBytes = 1 << 22;

/** Verifies an export in constant memory; a second thread hashes each part while this one checks it. */
export async function verifyFile(file: string, verifier: ExportVerifier): Promise<Verdict> {
  const handle = await open(file);
  const slots = [0, 1].map(() => new SharedArrayBuffer(slotBytes));
  const worker = startRootsWorker(slots, verifier.sizes);
  try {
    await readThrough(
      handle,
      slots.map((slot) => Buffer.from(slot)),
      verifier,
      worker,
    );
    return verifier.finish(await worker.finish());
  } finally {
    await handle.close();
    await worker.stop();
  }
}

async function readThrough(
  handle: FileHandle,
  slots: readonly Buffer[],
  verifier: ExportVerifier,
  worker: RootsWorker,
): Promise<void> {
  let rest = Buffer.alloc(0);
  for (let turn = 0; ; turn = (turn + 1) % slots.length) {
    const slot = slots[turn] ?? rest;
    await worker.free(turn);
    rest.copy(slot);
    const { bytesRead } = await handle.read(slot, rest.length, slot.length - rest.length);
    if (bytesRead === 0) break;
    const filled = slot.subarray(0, rest.length + bytesRead);
    const whole = filled.lastIndexOf(10) + 1;
    if (whole > 0) worker.give(turn, whole);
    takeLines(filled.subarray(0, whole), (line) => verifier.line(line));
    rest = Buffer.from(filled.subarray(whole));
    if (rest.length === slotBytes) break;
  }
  if (rest.length > 0)
    verifier.note({
      seq: verifier.size + 1,
      words: 'the export ends in the middle of a line: it is truncated',
    });
}
