import { type ChainPosition, moveOn, type Checkpoint } from '../../../base/values/triggers/chain-position.ts';
import { chainTermsHash } from '../../../base/values/triggers/trigger-terms.ts';
import type { Block } from '../../../payments/peers/chain/blocks.ts';
import { beginChainLook, moveChainCursor, renewChainLook } from '../../../calls/store/trigger-cursors.ts';
import {
  type ChainContext,
  type ChainLook,
  type ChainTrigger,
  present,
  type Problem,
  problemOf,
} from './chain-look.ts';
import { readNext } from './read-next.ts';
import type { JsonValue } from '../../../base/values/triggers/chain-event.ts';
import { type ChainLog, nameLogs } from '../../../base/values/triggers/chain-log.ts';

/** A gateway that ended during a look is replaced after this time; one that looks says so in time. */
const leaseMs = 10_000;
const renewMs = 2_500;
/** Then the look ends, and the next one begins immediately, in any process. */
const longestLookMs = 30_000;
/** Where the ledger takes no further call. */
const fullMs = 1_000;

/** `reached`: the cursor is at the head. `more`: there are more blocks. `lost`: another gateway has begun the next look. */
type Step = { readonly kind: 'reached' | 'more' | 'full' | 'lost' } | Problem;

/** How far the look has come. */
interface Progress {
  position: ChainPosition | undefined;
  head: bigint | undefined;
}

/**
 * Reads the chain of a trigger on, if that is due and no other gateway does, and fires at its events in the order of the chain. The
 * cursor moves once the ledger has the calls of its blocks. Whatever ends a look, the next one begins at the cursor, and a call that is on
 * record is not made again.
 */
export async function followChain(context: ChainContext, trigger: ChainTrigger): Promise<void> {
  const { pool, ahead } = context;
  const { name, terms } = trigger;
  const cursor = { trigger: name, network: terms.network, terms: chainTermsHash(terms) };
  const begun = await beginChainLook(pool, cursor, leaseMs);
  if (!begun) return;
  const progress: Progress = { position: begun.position, head: begun.head };
  const note = (dueMs: number, problem?: string): Promise<boolean> =>
    moveChainCursor(pool, cursor, { look: begun.look, ...progress, dueMs, problem });
  const save: ChainLook['save'] = (position, head) => {
    // what was fired above the cursor is below it now, or is read again after a reorg
    if (position !== progress.position) ahead.fired.clear();
    Object.assign(progress, { position, head });
    return note(leaseMs);
  };
  const renewal = startRenewal(() => renewChainLook(pool, cursor, begun.look, leaseMs));
  const isStopping = (): boolean => context.isStopping() || renewal.isLost();
  const look = { ...context, trigger, save, isStopping };
  let ended: Step;
  try {
    ended = await walk(look, begun.position, begun.earlier);
  } finally {
    await renewal.end();
  }
  if (ended.kind === 'lost') return;
  const pollMs = terms.pollSecs * 1_000;
  const dueMs = { problem: pollMs, full: fullMs, more: 0, reached: pollMs }[ended.kind];
  await note(dueMs, ended.kind === 'problem' ? ended.problem : undefined);
}

/** Renews the lease until it is ended. A renewal that fails is repeated: the lease lasts for several. */
function startRenewal(renew: () => Promise<boolean>): {
  readonly isLost: () => boolean;
  readonly end: () => Promise<void>;
} {
  let isLost = false;
  let renewing = Promise.resolve();
  const timer = setInterval(() => {
    renewing = renewing
      .then(renew)
      .then((isOurs) => void (isLost ||= !isOurs))
      .catch(() => undefined);
  }, renewMs);
  return {
    isLost: () => isLost,
    end: () => {
      clearInterval(timer);
      return renewing;
    },
  };
}

async function walk(
  look: ChainLook,
  known: ChainPosition | undefined,
  earlier: ChainPosition | undefined,
): Promise<Step> {
  const answer = await look.reader.head(look.trigger.terms.finality);
  if (answer.kind === 'unavailable') return problemOf(answer);
  const { block: head } = answer;
  const begin = known ? await stillCanonical(look, known, head) : await firstPosition(look, earlier, head);
  if (begin.kind === 'problem') return begin;
  if (begin.kind === 'ahead')
    return (await look.save(undefined, head.number)) ? { kind: 'reached' } : { kind: 'lost' };
  let { position } = begin;
  // if nothing has changed, the look has not ended well yet either
  if (position !== known && !(await look.save(position, head.number))) return { kind: 'lost' };
  if (head.number < position[0].number) return { kind: 'problem', problem: 'head_below_cursor' };
  const endMs = performance.now() + longestLookMs;
  while (position[0].number < head.number) {
    if (look.isStopping() || performance.now() > endMs) return { kind: 'more' };
    const next = await readNext(look, position[0], head);
    if (next.kind === 'problem') return next;
    const fired = await fireLogs(look, next.logs);
    if (fired === 'full') return { kind: 'full' };
    if (fired === 'stopped') return { kind: 'more' };
    position = moveOn(position, next.last);
    if (!(await look.save(position, head.number))) return { kind: 'lost' };
  }
  return { kind: 'reached' };
}

/**
 * Goes back to before the blocks that were replaced since the last look. A final block that was replaced is a problem instead: the
 * node contradicts itself, or the chain has broken its word, and the operator decides. A head below the cursor moves nothing: the node lags.
 */
async function stillCanonical(
  look: ChainLook,
  position: ChainPosition,
  head: Block,
): Promise<{ readonly kind: 'position'; readonly position: ChainPosition } | Problem> {
  const [cursor] = position;
  if (head.number <= cursor.number) return { kind: 'position', position };
  const block = present(await look.reader.blockAt(cursor.number));
  if (block.kind === 'problem') return block;
  if (block.value.hash === cursor.hash) return { kind: 'position', position };
  const { name, terms } = look.trigger;
  if (terms.finality === 'final') return { kind: 'problem', problem: 'final_block_replaced' };
  const found = await newestCanonical(look, position, head);
  if (found.kind === 'position') {
    const [from, to] = [String(found.position[0].number), String(cursor.number)];
    look.log.warn(
      { trigger: name, network: terms.network, from, to },
      'blocks that a trigger had read were replaced: it reads them again',
    );
  }
  return found;
}

/** `full`: the ledger takes no further call now. `stopped`: this process ends, or another one looks. */
type FiredLogs = 'fired' | 'full' | 'stopped';

/** Fires at each log in order. Those before the one at which it ends are on record. */
async function fireLogs(look: ChainLook, logs: readonly ChainLog[]): Promise<FiredLogs> {
  const { trigger, ahead, counts, fire, isStopping } = look;
  for (const { id, log } of nameLogs(trigger.terms.network, logs)) {
    if (ahead.fired.has(id)) continue;
    const args = trigger.terms.event.decode(log);
    if (!args) {
      counts.add(trigger.name, 'foreign');
      continue;
    }
    if (isStopping()) return 'stopped';
    const answer = await fire({ id, body: bodyOf(trigger, log, args), log });
    counts.add(trigger.name, answer);
    if (answer === 'full') return 'full';
    ahead.fired.add(id);
  }
  return 'fired';
}

function bodyOf(
  { name, terms }: ChainTrigger,
  log: ChainLog,
  args: Readonly<Record<string, JsonValue>>,
): string {
  return JSON.stringify({
    trigger: name,
    network: terms.network,
    address: log.address,
    event: terms.event.signature,
    args,
    block_number: String(log.blockNumber),
    block_hash: log.blockHash,
    transaction: log.transaction,
    log_index: log.logIndex,
  });
}

type Found = { readonly kind: 'position'; readonly position: ChainPosition } | Problem;

/**
 * Where a trigger begins that has no position: before its first block, if it names one; else where it was when it was configured in another
 * way, so that no event is between the two; else at the head. `ahead`: the first block is not there yet.
 */
async function firstPosition(
  look: ChainLook,
  earlier: ChainPosition | undefined,
  head: Block,
): Promise<Found | { readonly kind: 'ahead' }> {
  const { startBlock } = look.trigger.terms;
  if (startBlock === undefined)
    return earlier ? newestCanonical(look, earlier, head) : { kind: 'position', position: [head] };
  const before = startBlock === 0n ? 0n : startBlock - 1n;
  if (before > head.number) return { kind: 'ahead' };
  const block = present(await look.reader.blockAt(before));
  return block.kind === 'present' ? { kind: 'position', position: [block.value] } : block;
}

/**
 * The newest checkpoint that the chain still has, and not above the head. If it has lost all of them, the height of the oldest one: what was read
 * above it is read again.
 */
async function newestCanonical({ reader }: ChainLook, position: ChainPosition, head: Block): Promise<Found> {
  for (const [at, checkpoint] of position.entries()) {
    if (checkpoint.number > head.number) continue;
    const answer = await reader.blockAt(checkpoint.number);
    if (answer.kind === 'unavailable') return problemOf(answer);
    if (answer.value?.hash === checkpoint.hash)
      return { kind: 'position', position: [checkpoint, ...position.slice(at + 1)] };
  }
  const oldest: Checkpoint = position.at(-1) ?? position[0];
  const height = oldest.number < head.number ? oldest.number : head.number;
  const block = present(await reader.blockAt(height));
  return block.kind === 'present' ? { kind: 'position', position: [block.value] } : block;
}
