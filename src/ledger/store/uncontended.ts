import { createHash } from 'node:crypto';
import {
  type BatchAnswer,
  batchText,
  type EncodedCommand,
  type HaltAnswer,
  type UncontendedAnswer,
} from './append-batch.ts';
import { textLiteral } from './text-literal.ts';
import { detailOf } from './uncontended-credit.ts';
import { joined, separators, type UncontendedParts } from './uncontended-parts.ts';

/**
 * The batch as one text for `tollbook.append_uncontended`, in one simple-protocol message as `appendStatement()` is; undefined if two of
 * its commands meet or one is of a kind that is always decided.
 */
export function uncontendedStatement(
  laneId: number,
  flusherId: string,
  batchNo: number,
  acknowledged: number,
  commands: readonly EncodedCommand[],
): string | undefined {
  const all = partsOf(commands);
  if (!all || doMeet(all)) return undefined;
  const changed = all.flatMap(({ changed: one }) => one ?? []);
  const lists = [
    all.map(({ types }) => types),
    all.map(({ data }) => data),
    all.map(({ stream }) => stream),
    all.map(({ expected }) => expected),
    all.flatMap(({ body }) => body ?? []),
    all.flatMap(({ claims }) => claims),
    all.flatMap(({ added }) => added ?? []),
    changed.map(({ callId }) => String(callId)),
    changed.map(({ op }) => op),
    changed.map(leaseOf),
    all.flatMap(({ issuedAt }) => (issuedAt === '' ? [] : [issuedAt])),
    all.flatMap(({ admitted }) => admitted ?? []),
    all.flatMap(({ settled }) => settled ?? []),
    all.flatMap(({ endsAt }) => (endsAt === '' ? [] : [endsAt])),
    all.flatMap(({ nonces }) => nonces ?? []),
    all.flatMap(({ refuses }) => refuses || []),
    all.flatMap(({ unlessRefused }) => unlessRefused || []),
  ];
  const content = createHash('sha256').update(batchText(commands)).digest('hex');
  const args = lists.map((list) => textLiteral(list.join(separators.item))).join(',');
  return `select tollbook.append_uncontended(${laneId}::smallint,'${flusherId}',${batchNo},${acknowledged},'\\x${content}',${args}) as answer`;
}

/** The lease that a change is made under; one that it begins has its length as well. */
function leaseOf(change: NonNullable<UncontendedParts['changed']>): string {
  if (change.op === 'lease') return joined([change.leaseId, String(change.delayMs)]);
  return 'leaseId' in change ? change.leaseId : '';
}

function partsOf(commands: readonly EncodedCommand[]): UncontendedParts[] | undefined {
  const all = commands.flatMap(({ parts }) => parts ?? []);
  return all.length === commands.length ? all : undefined;
}

/** The unique indexes would refuse the whole batch. */
function doMeet(all: readonly UncontendedParts[]): boolean {
  const names = all.flatMap(({ unique }) => unique);
  return new Set(names).size < names.length;
}

/** A batch's answer with its commands' results, whichever way it was recorded. */
export function fullAnswer(
  answer: BatchAnswer | UncontendedAnswer | HaltAnswer,
  commands: readonly EncodedCommand[],
): BatchAnswer | HaltAnswer {
  if (!('versions' in answer)) return answer;
  const { versions, added, limits, ...head } = answer;
  const all = partsOf(commands) ?? [];
  let seq = answer.seq - all.reduce((sum, { events }) => sum + events, 0);
  let [calls, admissions] = [0, 0];
  const results = all.map((parts, index) => {
    seq += parts.events;
    const left = parts.admitted === undefined ? undefined : limits[admissions++];
    return {
      outcome: 'ok' as const,
      version: (versions[index] ?? 0) + parts.events,
      seq: parts.events === 0 ? null : seq,
      call_id: parts.added === undefined ? null : (added[calls++] ?? null),
      at: answer.at,
      detail: left ? detailOf(left) : {},
    };
  });
  return { ...head, results };
}
