import type { ChainPosition } from '../../../base/values/triggers/chain-position.ts';
import type { ChainTerms } from '../../../base/values/triggers/trigger-terms.ts';
import { beginningOf, lastWords } from '../../../base/values/last-words.ts';
import type { EventReader } from '../../../payments/peers/chain/event-reader.ts';
import type { RpcAnswer, RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import type { Fire } from './fire.ts';
import type { ScheduleContext } from './fire-schedule.ts';

/** A trigger that fires at the events of contracts. */
export interface ChainTrigger {
  readonly name: string;
  readonly terms: ChainTerms;
}

/** What a process remembers of a trigger from one look to the next; each process has its own. */
export interface ReadAhead {
  /** How many blocks it asks for in one request: fewer after a node has refused a range. */
  range: bigint;
  successes: number;
  /** The ids of the blocks after the cursor that are on record. */
  readonly fired: Set<string>;
}

export interface ChainContext extends ScheduleContext {
  readonly reader: EventReader;
  readonly fire: Fire;
  readonly ahead: ReadAhead;
  readonly isStopping: () => boolean;
}

/** One look of one process at the chain of a trigger. */
export interface ChainLook extends ChainContext {
  readonly trigger: ChainTrigger;
  /** Notes the position, and that this process still looks. False if another gateway has begun the next look. */
  readonly save: (position: ChainPosition | undefined, head: bigint) => Promise<boolean>;
}

/** The answer of a node without the block. */
export interface Problem {
  readonly kind: 'problem';
  /** A reason code: the cause, and for the error of a node its words. */
  readonly problem: string;
}

const mostChars = 200;

export function problemOf({ cause, error }: RpcUnavailable): Problem {
  const words = cause === 'rpc_error' && error ? `: ${lastWords(error.message, [])}` : '';
  return { kind: 'problem', problem: beginningOf(`${cause}${words}`, mostChars) };
}

/** A block that must exist; a node without it lags. */
export function present<T>(
  answer: RpcAnswer<T | null>,
): { readonly kind: 'present'; readonly value: T } | Problem {
  if (answer.kind === 'unavailable') return problemOf(answer);
  return answer.value === null
    ? { kind: 'problem', problem: 'missing_block' }
    : { kind: 'present', value: answer.value };
}
