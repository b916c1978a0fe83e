import { z } from 'zod';
import { type NoteVerifier, openCheckpoint, type TreeHead } from '../../../base/values/log/checkpoint.ts';
import { type LedgerProblem, LedgerCheck } from '../../rules/ledger-check.ts';
import { isTrailer, type Roots } from '../log/tree-roots.ts';

/** The result for one checkpoint. `words` is undefined if the checkpoint holds, otherwise the reason. */
export interface CheckpointVerdict {
  readonly source: string;
  readonly head: TreeHead | undefined;
  readonly words: string | undefined;
}

export interface Verdict {
  /** The number of events read. */
  readonly events: number;
  readonly root: Buffer;
  /** The first invalid event, or the first difference between counters and events. */
  readonly fault: LedgerProblem | undefined;
  /** Payments of contracts, whose signatures are not checked: only their chains can tell. */
  readonly contractPayments: number;
  /** By size. */
  readonly checkpoints: readonly CheckpointVerdict[];
  /** Whether the input contained the counters. */
  readonly hasCounters: boolean;
  readonly isSound: boolean;
}

export interface GivenCheckpoint {
  /** Its source, for messages. */
  readonly source: string;
  readonly note: string;
}

const trailer = z.strictObject({
  counters: z.record(z.string(), z.int()),
  export: z.literal(1),
  seq: z.int().min(0),
});

/** Verifies an export against checkpoints, line by line. Its memory does not grow with the bytes of the events. The Merkle tree
 * over the same lines is computed by the caller. */
export class ExportVerifier {
  readonly #check: LedgerCheck;
  readonly #verdicts: CheckpointVerdict[] = [];
  readonly #waiting: { source: string; head: TreeHead }[] = [];
  #events = 0;
  #fault: LedgerProblem | undefined;
  #hasCounters = false;

  /** `isLast`: see LedgerCheck. Without it, memory grows with the number of streams. */
  constructor(
    checkpoints: readonly GivenCheckpoint[],
    verifier: NoteVerifier | undefined,
    isLast?: (stream: string, seq: number) => boolean,
  ) {
    this.#check = new LedgerCheck(isLast);
    for (const { source, note } of checkpoints) {
      try {
        if (!verifier)
          throw new Error('a checkpoint can be checked only with the public key: give it with --pubkey');
        this.#waiting.push({ source, head: openCheckpoint(note, verifier) });
      } catch (error) {
        const words = error instanceof Error ? error.message : String(error);
        this.#verdicts.push({ source, head: undefined, words });
      }
    }
    this.#waiting.sort((a, b) => a.head.size - b.head.size);
  }

  /** The tree sizes whose roots `finish` needs. */
  get sizes(): number[] {
    return this.#waiting.map(({ head }) => head.size);
  }

  /** Takes one line, without its line break. */
  line(bytes: Buffer): void {
    if (isTrailer(bytes)) this.#readTrailer(bytes);
    else this.leaf(bytes);
  }

  /** Takes one leaf. After an invalid event further leaves are only counted: their validity depends on it. */
  leaf(bytes: Buffer): void {
    this.#events += 1;
    this.#fault ??= this.#check.next(bytes);
  }

  /** Compares the counters with the events so far. */
  counters(seq: number, counters: Readonly<Record<string, number>>): void {
    this.#hasCounters = true;
    this.#fault ??= this.#compareCounters(seq, counters);
  }

  /** Adds a fault that the caller found; the first one counts. */
  note(fault: LedgerProblem): void {
    this.#fault ??= fault;
  }

  get size(): number {
    return this.#events;
  }

  /** The verdict, with the roots over the same leaves. */
  finish({ size, root, at }: Roots): Verdict {
    if (size !== this.#events)
      throw new Error(`${size} leaves were hashed, but ${this.#events} were checked`);
    const checkpoints = [...this.#verdicts];
    for (const { source, head } of this.#waiting)
      checkpoints.push({ source, head, words: this.#compare(head, at.get(head.size), checkpoints) });
    return {
      events: size,
      root,
      fault: this.#fault,
      contractPayments: this.#check.contractPayments,
      checkpoints,
      hasCounters: this.#hasCounters,
      isSound: this.#fault === undefined && checkpoints.every(({ words }) => words === undefined),
    };
  }

  #compare(
    { size, root }: TreeHead,
    found: Buffer | undefined,
    earlier: readonly CheckpointVerdict[],
  ): string | undefined {
    const missing = size - this.#events;
    if (missing > 0 || !found) {
      const count = missing === 1 ? 'one is' : `${missing} are`;
      // if the events that are there do not follow each other, it may be others than the last ones
      const which = this.#fault === undefined ? 'the last ' : '';
      return `it covers ${size} events, but the ledger has ${this.#events}: ${which}${count} missing`;
    }
    return root.equals(found) ? undefined : mismatch(size, earlier);
  }

  #readTrailer(bytes: Buffer): void {
    let read: unknown;
    try {
      read = JSON.parse(bytes.toString('utf8'));
    } catch {
      read = undefined;
    }
    const { success, data } = trailer.safeParse(read);
    if (success) this.counters(data.seq, data.counters);
    else this.note({ seq: this.size, words: 'the counters of the export cannot be read' });
  }

  #compareCounters(seq: number, counters: Readonly<Record<string, number>>): LedgerProblem | undefined {
    const at = this.#check.seq;
    if (seq !== at)
      return { seq: at, words: `the ledger's own position is ${seq}, but its events end at ${at}` };
    const types = new Set([...Object.keys(counters), ...this.#check.counts.keys()]);
    for (const type of types) {
      const [stated, found] = [counters[type] ?? 0, this.#check.counts.get(type) ?? 0];
      if (stated !== found)
        return {
          seq: at,
          words: `the counter of ${type} is ${stated}, but there are ${found} such events`,
        };
    }
    return undefined;
  }
}

/** Where the history differs: after the last checkpoint that holds. */
function mismatch(size: number, earlier: readonly CheckpointVerdict[]): string {
  const held = earlier.flatMap(({ head, words }) => (head && words === undefined ? head.size : []));
  const first = Math.max(0, ...held) + 1;
  const where = first === size ? `event ${size} is` : `of the events ${first} to ${size} at least one is`;
  return `${where} not as it was sealed: changed, replaced or moved after sealing`;
}

/** How many events the largest checkpoint that holds covers; 0 without one. */
export function coveredEvents({ checkpoints }: Verdict): number {
  return Math.max(
    0,
    ...checkpoints.flatMap(({ head, words }) => (words === undefined && head ? head.size : [])),
  );
}

/**
 * The lines that the command prints for a verdict.
 * @param wrongRows of the read models; undefined if there are none to compare
 */
export function verdictLines(
  verdict: Verdict,
  wrongRows?: readonly { readonly table: string; readonly words: string }[],
): string[] {
  const { events, root, fault, contractPayments, checkpoints, hasCounters } = verdict;
  const checkpointLines = checkpoints.map(({ source, head, words }) =>
    words === undefined
      ? `ok     ${source}: the first ${head?.size} events are as they were sealed`
      : `WRONG  ${source}: ${words}`,
  );
  const forked = forkedAt(checkpoints);
  const covered = coveredEvents(verdict);
  return [
    `${events} events, root ${root.toString('base64')}`,
    fault === undefined
      ? 'ok     every event: its place, its bytes, versions, claims, signatures, legal transitions'
      : `WRONG  ${fault.seq === 0 ? '' : `first at event ${fault.seq}: `}${fault.words}`,
    ...(contractPayments === 0 ? [] : [`-      ${notRecovered(contractPayments)}`]),
    hasCounters
      ? fault === undefined
        ? 'ok     the counters are the fold of the events'
        : '-      counters: see above'
      : '-      the input has no counters',
    ...(wrongRows?.map(({ table, words }) => `WRONG  row of ${table}: ${words}`) ?? []),
    ...(wrongRows?.length === 0
      ? ['ok     every row of the read models, claims, calls and credit is the fold of the events']
      : []),
    ...checkpointLines,
    ...(checkpoints.length === 0
      ? ['-      no checkpoint was given: nothing proves that this is the sealed ledger']
      : []),
    ...(forked === undefined
      ? []
      : [`WRONG  the key has signed two histories: ${forked}. Keep both checkpoints: they prove it`]),
    ...(checkpoints.length > 0 && covered < events ? [`-      ${notCovered(covered, events)}`] : []),
    verdict.isSound && !wrongRows?.length ? 'sound' : 'NOT SOUND',
  ];
}

function notRecovered(contractPayments: number): string {
  return contractPayments === 1
    ? '1 payment is said to be signed by a contract: only its chain can tell whether its signature holds'
    : `${contractPayments} payments are said to be signed by contracts: only their chains can tell whether their signatures hold`;
}

function notCovered(covered: number, events: number): string {
  return events - covered === 1
    ? `1 event is not yet covered by a checkpoint that holds: event ${events}`
    : `${events - covered} events are not yet covered by a checkpoint that holds: events ${covered + 1} to ${events}`;
}

/** An older checkpoint that does not hold although a newer one does. */
function forkedAt(checkpoints: readonly CheckpointVerdict[]): string | undefined {
  const newer = checkpoints.findLast(({ head, words }) => head && words === undefined);
  const older = checkpoints.find(
    ({ head, words }) => head && words !== undefined && head.size <= (newer?.head?.size ?? 0),
  );
  return newer && older ? `${newer.source} holds for this one, ${older.source} for another` : undefined;
}
