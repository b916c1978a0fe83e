import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import type { ResultStoreConfig } from '../../../base/config/config.ts';
import { requireKey, type ResultStore } from './result-store.ts';

/** A file for each part. Gateways on several machines need the same folder. */
export function folderResults(config: Extract<ResultStoreConfig, { kind: 'folder' }>): ResultStore {
  const folder = path.resolve(config.folder);
  const fileOf = (key: string): string => path.join(folder, ...requireKey(key).split('/'));
  return {
    async put(key, bytes) {
      try {
        await putWhole(folder, fileOf(key), bytes);
        return { kind: 'put' };
      } catch (error) {
        return { kind: 'failed', cause: codeOf(error) };
      }
    },
    async get(key, from, maxBytes) {
      try {
        return { kind: 'got', bytes: await readPiece(fileOf(key), from, maxBytes) };
      } catch (error) {
        const cause = codeOf(error);
        return cause === 'ENOENT' ? { kind: 'none' } : { kind: 'failed', cause };
      }
    },
    async remove(key) {
      try {
        const file = fileOf(key);
        await rm(file, { force: true });
        await removeEmptyDirs(folder, path.dirname(file));
        return { kind: 'removed' };
      } catch (error) {
        return { kind: 'failed', cause: codeOf(error) };
      }
    },
    close: () => Promise.resolve(),
  };
}

/** A reader sees the whole file or none; a full disk leaves nothing. It survives a loss of power. */
async function putWhole(folder: string, file: string, bytes: Buffer): Promise<void> {
  const dir = path.dirname(file);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const part = `${file}.${randomUUID()}`;
  try {
    const handle = await open(part, 'wx', 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(part, file);
    // the names, up to the store's folder: each may be new
    for (let at = dir; ; at = path.dirname(at)) {
      await syncDir(at);
      if (at === folder || !at.startsWith(folder)) break;
    }
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readPiece(file: string, from: number, maxBytes: number): Promise<Buffer> {
  const handle = await open(file, 'r');
  try {
    const left = Math.max(0, (await handle.stat()).size - from);
    const piece = Buffer.alloc(Math.min(left, maxBytes));
    let filled = 0;
    while (filled < piece.length) {
      const { bytesRead } = await handle.read(piece, filled, piece.length - filled, from + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return piece.subarray(0, filled);
  } finally {
    await handle.close();
  }
}

async function removeEmptyDirs(folder: string, from: string): Promise<void> {
  for (let dir = from; dir !== folder && dir.startsWith(folder); dir = path.dirname(dir)) {
    try {
      await rmdir(dir);
    } catch {
      return;
    }
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
