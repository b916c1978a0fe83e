import pg from 'pg';
import type { BatchAnswer, EncodedCommand } from './append-batch.ts';

/** An event that the database had acknowledged: all that its leaf has. */
export interface KnownEvent {
  readonly seq: number;
  readonly stream: string;
  readonly version: number;
  readonly type: string;
  /** Canonical JSON. */
  readonly data: string;
  /** RFC 3339 UTC. */
  readonly at: string;
}

/** The last event that a batch is known to have recorded; undefined where it recorded none, or refusals alone. */
export function lastRecorded(
  commands: readonly EncodedCommand[],
  { results, at }: BatchAnswer,
): KnownEvent | undefined {
  const index = results.findLastIndex((one) => one.outcome === 'ok' && 'seq' in one && one.seq !== null);
  const [last, result] = [commands[index]?.last, results[index]];
  if (!last || result?.outcome !== 'ok' || !('seq' in result) || result.seq === null) return undefined;
  return { ...last, seq: result.seq, version: result.version, at };
}

const eventTime = `to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Reads an event that the database had acknowledged: the answer is a `KnownEvent`, or null. */
export function readStatement(laneId: number, seq: number): string {
  return `select (select json_build_object('seq', seq, 'stream', tollbook.stream_name(stream), 'version', version, 'type', type,
    'data', data, 'at', ${eventTime}) from tollbook.event where lane_id = ${laneId} and seq = ${seq}) as answer`;
}

/** What became of an event: it is on record, it is missing, or it is missing and an operator has recovered the ledger since. */
export type Fate = 'kept' | 'lost' | 'recovered';

/** The answer is a `Fate`. */
export function fateStatement(laneId: number, event: KnownEvent): string {
  const [stream, type, data, at] = [event.stream, event.type, event.data, event.at].map((text) =>
    pg.escapeLiteral(text),
  );
  // the character after the colon ends the range of the streams of recoveries
  return `select case
    when exists (select from tollbook.event where lane_id = ${laneId} and seq = ${event.seq} and version = ${event.version}
      and stream = tollbook.stream_key(${stream}) and type = ${type} and data = ${data} and ${eventTime} = ${at}) then 'kept'
    when exists (select from tollbook.event where stream >= tollbook.stream_key('recovery:') and stream < tollbook.stream_key('recovery;')
      and type = 'ledger_recovered' and at > ${at}::timestamptz) then 'recovered'
    else 'lost' end as answer`;
}
