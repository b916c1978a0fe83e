import type pg from 'pg';
import { originIn } from '../../../base/values/log/log-generation.ts';
import { entryBundle, isWithin, type Tile, tileWidth } from '../../../base/values/log/tiles.ts';
import { hashBytes } from '../../../base/values/log/merkle.ts';
import { readHead, readLeaves, readLogGeneration, readTiles, type StoredHead } from '../../store/log.ts';
import { readStreamLeaves } from '../../../ledger/store/streams.ts';
import { type InclusionProof, TileCache, proveConsistency, proveEvents } from './prove.ts';

/** Reads a log for publication: nothing beyond its newest tree head. */
export interface LogReader {
  newest(): Promise<StoredHead | undefined>;
  /** The bytes of a tile; undefined for a tile beyond the newest head. */
  tile(tile: Tile): Promise<Buffer | undefined>;
  /** Inclusion proofs and the head that they lead to; undefined if that head does not include all of the events. */
  prove(seqs: readonly number[], size?: number): Promise<ProvenEvents | undefined>;
  /** The same for those of the events that the head includes. */
  proveSealed(head: StoredHead, seqs: readonly number[]): Promise<ProvenEvents>;
  /** All events of a stream, with proofs of those that are sealed. */
  proveStream(stream: string): Promise<ProvenStream | undefined>;
  consistency(from: number, to: number): Promise<{ hashes: readonly Buffer[]; head: StoredHead } | undefined>;
}

export interface ProvenEvents {
  readonly head: StoredHead;
  readonly proofs: readonly InclusionProof[];
}

export interface ProvenStream extends ProvenEvents {
  /** By `seq`. */
  readonly leaves: ReadonlyMap<number, Buffer>;
  /** The number of events that the newest head does not include yet. */
  readonly pending: number;
}

/** The reader of a ledger's own log; undefined if the ledger is not sealed. */
export function ownLogReader(
  pool: pg.Pool,
  log: { readonly origin: string } | undefined,
): LogReader | undefined {
  return log && openLogReader(pool, log.origin);
}

/** The reader of a ledger's own log on the pool that it is read from: the primary's or a replica's. */
export type OwnLogReaders = (pool: pg.Pool) => LogReader | undefined;

/** One reader for each pool, with the tiles that it knows. */
export function ownLogReaders(log: { readonly origin: string } | undefined): OwnLogReaders {
  const known = new WeakMap<pg.Pool, LogReader | undefined>();
  return (pool) => {
    if (!known.has(pool)) known.set(pool, ownLogReader(pool, log));
    return known.get(pool);
  };
}

/** @param origin the name of the log's first generation */
export function openLogReader(pool: pg.Pool, origin: string): LogReader {
  let known = new TileCache();
  let knownGeneration = 1;
  const proveSealed = async (head: StoredHead, seqs: readonly number[]): Promise<ProvenEvents> => {
    const sealed = seqs.filter((seq) => seq <= head.size);
    return { head, proofs: await proveEvents(pool, head, sealed, known) };
  };
  const headFor = async (size?: number): Promise<StoredHead | undefined> => {
    const { generation } = await readLogGeneration(pool);
    // tiles of the history that was lost
    if (generation !== knownGeneration) known = new TileCache();
    knownGeneration = generation;
    return readHead(pool, originIn(origin, generation), size);
  };
  return {
    newest: () => headFor(),
    async tile(tile) {
      const head = await headFor();
      if (!head || !isWithin(tile, head.size)) return undefined;
      const { level, index, width } = tile;
      if (level === 'entries') return entryBundle(await readLeaves(pool, index * tileWidth, width));
      const tiles = await readTiles(pool, [{ level, tile: index }]);
      return tiles.get(`${level}/${index}`)?.subarray(0, width * hashBytes);
    },
    async prove(seqs, size) {
      const head = await headFor(size);
      if (!head || seqs.some((seq) => seq > head.size)) return undefined;
      return { head, proofs: await proveEvents(pool, head, seqs, known) };
    },
    proveSealed,
    async proveStream(stream) {
      const [head, events] = await Promise.all([headFor(), readStreamLeaves(pool, stream)]);
      if (!head || events.length === 0) return undefined;
      const seqs = events.map(({ seq }) => seq);
      const proven = await proveSealed(head, seqs);
      return {
        ...proven,
        leaves: new Map(events.map(({ seq, leaf }) => [seq, leaf])),
        pending: events.length - proven.proofs.length,
      };
    },
    async consistency(from, to) {
      const head = await headFor(to);
      if (!head || from > head.size) return undefined;
      return { head, hashes: await proveConsistency(pool, from, head) };
    },
  };
}
