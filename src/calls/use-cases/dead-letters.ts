import { chunksOf } from '../../base/values/chunks.ts';
import { failureCause } from '../../base/values/failure-cause.ts';
import { type DeadLetterFilter, type DeadLetterRow, findDeadLetters } from '../store/dead-letters.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';

/** The most dead letters that one batch changes. */
export const maxChanged = 500;
/** The most that one batch reads: Node decides the cause, so calls of other causes are read as well. */
const maxRead = 20_000;
const pageSize = 2_000;
/** This many at the same time: their appends share the lane's batches. */
const atOnce = 32;

/** Which dead letters an operator means. */
export interface DeadLetterChoice extends DeadLetterFilter {
  /** The key of a cause, as `failureCause()` makes it. */
  readonly cause?: string | undefined;
}

export interface DeadLetterBatch {
  readonly choice: DeadLetterChoice;
  /** The call id after which the batch begins. */
  readonly after: number;
  readonly max: number;
}

export interface BatchReport<Why extends string> {
  readonly done: number;
  readonly skipped: readonly { readonly callId: number; readonly why: Why }[];
  /** The call id after which the next batch begins; undefined after the last dead letter. */
  readonly next: number | undefined;
}

/** What became of one dead letter of a batch. */
export type BatchStep<Why extends string> =
  | { readonly kind: 'done' }
  | { readonly kind: 'skipped'; readonly why: Why };

/** Does something with each dead letter of one batch that is meant. */
export async function changeDeadLetters<Why extends string>(
  db: LedgerDatabase,
  batch: DeadLetterBatch,
  change: (callId: number) => Promise<BatchStep<Why>>,
): Promise<BatchReport<Why>> {
  const { rows, next } = await listDeadLetters(db, batch);
  const callIds = rows.map(({ callId }) => callId);
  return { ...(await changeEach(callIds, change)), next };
}

/** Does something with each of some dead letters. */
export async function changeEach<Why extends string>(
  callIds: readonly number[],
  change: (callId: number) => Promise<BatchStep<Why>>,
): Promise<Omit<BatchReport<Why>, 'next'>> {
  const skipped: { callId: number; why: Why }[] = [];
  let done = 0;
  for (const some of chunksOf(callIds, atOnce)) {
    const steps = await Promise.all(some.map(change));
    for (const [index, step] of steps.entries()) {
      if (step.kind === 'done') done++;
      else skipped.push({ callId: some[index] ?? 0, why: step.why });
    }
  }
  return { done, skipped };
}

/** The dead letters of one batch; `next` as in its report. */
export async function listDeadLetters(
  db: LedgerDatabase,
  { choice, after, max }: DeadLetterBatch,
): Promise<{ readonly rows: readonly DeadLetterRow[]; readonly next: number | undefined }> {
  const { cause, ...filter } = choice;
  const found: DeadLetterRow[] = [];
  const size = cause === undefined ? max : pageSize;
  let next = after;
  for (let read = 0; read < maxRead; read += size) {
    const rows = await findDeadLetters(db, filter, next, size);
    for (const row of rows) {
      next = row.callId;
      if (cause !== undefined && failureCause(row.reason, row.error).key !== cause) continue;
      found.push(row);
      if (found.length === max) return { rows: found, next };
    }
    if (rows.length < size) return { rows: found, next: undefined };
  }
  return { rows: found, next };
}

/** The most that are counted: a larger number is "this many or more". */
export const mostCounted = 10_000;

/** How many dead letters after a call id are selected. */
export async function countChosen(
  db: LedgerDatabase,
  choice: DeadLetterChoice,
  after: number,
): Promise<number> {
  let count = 0;
  for (let next: number | undefined = after; next !== undefined && count < mostCounted;) {
    const page = await listDeadLetters(db, { choice, after: next, max: pageSize });
    count += page.rows.length;
    next = page.next;
  }
  return Math.min(count, mostCounted);
}

/** The dead letters of one cause. */
export interface CauseGroup {
  readonly cause: string;
  /** Undefined if the ledger has no call. */
  readonly reason: string | undefined;
  /** What their runners said, without what differs from call to call. */
  readonly words: string;
  readonly calls: number;
  /** As `service/job`; at most 10. */
  readonly jobs: readonly string[];
  /** At most 10. */
  readonly runners: readonly string[];
  readonly oldest: Date;
  readonly newest: Date;
  /** One of them, with all that its runner said. */
  readonly exampleCallId: number;
}

export interface CauseReport {
  /** The largest first. */
  readonly groups: readonly CauseGroup[];
  /** Dead letters of causes that are not listed, because there are too many causes. */
  readonly others: number;
  /** The call id after which the next part begins; undefined after the last dead letter. */
  readonly next: number | undefined;
}

const maxNames = 10;
/** The most dead letters that one look groups. */
const maxGrouped = 50_000;
const groupedAtOnce = 1_000;
/** A runner whose every answer is another text must not fill the memory. */
const maxGroups = maxGrouped;
/** The most causes that a list has. */
const maxListed = 1_000;

/** Groups dead letters by cause, after a call id: `most` of them in one look. */
export async function groupDeadLetters(
  db: LedgerDatabase,
  filter: DeadLetterFilter,
  after: number,
  most = maxGrouped,
): Promise<CauseReport> {
  const found = new Map<string, CauseGroup>();
  let next: number | undefined = after;
  for (let read = 0; read < most && next !== undefined; read += groupedAtOnce) {
    const rows: DeadLetterRow[] = await findDeadLetters(db, filter, next, groupedAtOnce);
    for (const row of rows) addGroup(found, groupOf(row));
    next = rows.length < groupedAtOnce ? undefined : rows.at(-1)?.callId;
  }
  return { groups: inOrder(found), others: 0, next };
}

/** Two parts as one. */
export function joinCauses(one: CauseReport, next: CauseReport): CauseReport {
  const found = new Map(one.groups.map((group) => [group.cause, group]));
  let others = one.others + next.others;
  for (const group of next.groups) {
    if (found.has(group.cause) || found.size < maxGroups) addGroup(found, group);
    else others += group.calls;
  }
  return { groups: inOrder(found), others, next: next.next };
}

/** As many causes as a list has; the dead letters of the rest are counted. */
export function listed({ groups, others, next }: CauseReport): CauseReport {
  const rest = groups.slice(maxListed).reduce((sum, { calls }) => sum + calls, 0);
  return { groups: groups.slice(0, maxListed), others: others + rest, next };
}

function inOrder(found: ReadonlyMap<string, CauseGroup>): CauseGroup[] {
  return [...found.values()].toSorted((a, b) => b.calls - a.calls || a.exampleCallId - b.exampleCallId);
}

function groupOf(row: DeadLetterRow): CauseGroup {
  const { key, words } = failureCause(row.reason, row.error);
  return {
    cause: key,
    reason: row.reason ?? undefined,
    words,
    calls: 1,
    jobs: [`${row.serviceId}/${row.jobIndex}`],
    runners: row.runner === null ? [] : [row.runner],
    oldest: row.deadSince,
    newest: row.deadSince,
    exampleCallId: row.callId,
  };
}

function addGroup(found: Map<string, CauseGroup>, group: CauseGroup): void {
  const known = found.get(group.cause);
  found.set(group.cause, known ? merged(known, group) : group);
}

function merged(one: CauseGroup, other: CauseGroup): CauseGroup {
  return {
    ...one,
    calls: one.calls + other.calls,
    jobs: joinNames(one.jobs, other.jobs),
    runners: joinNames(one.runners, other.runners),
    oldest: other.oldest < one.oldest ? other.oldest : one.oldest,
    newest: other.newest > one.newest ? other.newest : one.newest,
  };
}

function joinNames(some: readonly string[], more: readonly string[]): readonly string[] {
  if (some.length >= maxNames || more.every((name) => some.includes(name))) return some;
  return [...new Set([...some, ...more])].slice(0, maxNames);
}
