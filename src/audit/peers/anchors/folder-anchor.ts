import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { AnchorConfig } from '../../../base/config/config.ts';
import { readCheckpoint } from '../../../base/values/log/checkpoint.ts';
import {
  type Anchor,
  type AnchorAnswer,
  type AnchoredHead,
  type AnchorReading,
  directoryOf,
  fileNameOf,
  newestName,
} from './anchor.ts';

/**
 * Each checkpoint is a file named after its size, which is created once and never changed. The largest name is the newest
 * checkpoint; `checkpoint` is a copy of it for readers. So a process that stalls before its last write can at worst restore an
 * older copy, and repairs it before it continues. The folder must support hard links.
 */
export function folderAnchor({ name, everyMs, folder }: Extract<AnchorConfig, { kind: 'folder' }>): Anchor {
  return {
    name,
    everyMs,
    place: `the folder ${folder}`,
    isFree: true,
    publish: (head) => publish(path.join(folder, directoryOf(head.origin)), head).catch(failure),
    newest: (origin) => newest(path.join(folder, directoryOf(origin))).catch(failure),
    close: () => Promise.resolve(),
  };
}

async function publish(dir: string, head: AnchoredHead): Promise<AnchorAnswer> {
  await mkdir(dir, { recursive: true });
  const copied = await readText(path.join(dir, newestName));
  if (copied !== undefined && readCheckpoint(copied).size > head.size) return overtaken;
  const file = path.join(dir, fileNameOf(head));
  if (!(await createWhole(file, head.note))) {
    const known = readCheckpoint(await readFile(file, 'utf8'));
    if (!known.root.equals(head.root)) return { kind: 'failed', cause: 'another_history' };
  }
  for (let last = await largestName(dir); last !== undefined;) {
    await replaceWhole(path.join(dir, newestName), await readFile(path.join(dir, last), 'utf8'));
    const now = await largestName(dir);
    if (now === last) return last === fileNameOf(head) ? { kind: 'done' } : overtaken;
    last = now;
  }
  return { kind: 'failed', cause: 'file_removed' };
}

const overtaken: AnchorAnswer = { kind: 'failed', cause: 'overtaken' };

async function newest(dir: string): Promise<AnchorReading> {
  const last = await largestName(dir);
  const copied = await readText(path.join(dir, newestName));
  // an unreadable copy is returned unchanged: it fails its verification, and nothing is published over it
  const isCopyNewest = copied !== undefined && (last === undefined || sizeIn(copied) > Number(last));
  if (isCopyNewest) return { kind: 'note', note: copied };
  if (last === undefined) return { kind: 'none' };
  return { kind: 'note', note: await readFile(path.join(dir, last), 'utf8') };
}

/** Infinity for a file that is not a checkpoint. */
function sizeIn(note: string): number {
  try {
    return readCheckpoint(note).size;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

async function largestName(dir: string): Promise<string | undefined> {
  const names = await readdir(dir).catch(unlessAbsent);
  return (
    names?.filter((name) => /^\d{16}$/.test(name)).reduce((one, other) => (one > other ? one : other), '') ||
    undefined
  );
}

async function readText(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch(unlessAbsent);
}

function unlessAbsent(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}

/** Creates a file with its whole text in one step; false if it exists. */
async function createWhole(file: string, text: string): Promise<boolean> {
  const part = await writePart(file, text);
  try {
    await link(part, file);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return false;
  } finally {
    await unlink(part);
  }
}

/** A concurrent reader sees the old text or the new one. */
async function replaceWhole(file: string, text: string): Promise<void> {
  await rename(await writePart(file, text), file);
}

async function writePart(file: string, text: string): Promise<string> {
  const part = `${file}.${randomUUID()}.part`;
  const handle = await open(part, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return part;
}

function failure(error: unknown): { readonly kind: 'failed'; readonly cause: string } {
  return { kind: 'failed', cause: codeOf(error) };
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  return error instanceof Error ? error.message : 'unknown';
}
