import type { StreamEnding, UpstreamAnswer, UpstreamCause } from './answer.ts';
import { backOffMs } from '../../../base/values/back-off.ts';

/** What an attempt shows about its upstream, or about the model there. */
export interface HealthSign {
  /**
   * `began`: a stream has begun, which ends a probe; only a complete stream is a success, since an upstream that always cuts
   * its streams is not healthy. `neutral`: caused by the caller or the gateway.
   */
  readonly kind: 'success' | 'began' | 'failure' | 'neutral';
  /** True when it concerns all models of the upstream, so that no caller's request can cause it; otherwise one model. */
  readonly isOfUpstream?: boolean;
  /** How long to send no requests. */
  readonly retryAfterSecs?: number;
}

export interface HealthOptions {
  /** The count of consecutive failures that opens a circuit; failures of one model for one voter count as one. */
  readonly failuresToOpen: number;
  /** How long it stays open at first; each probe that fails doubles that, … */
  readonly firstPauseMs: number;
  /** … up to this. */
  readonly maxPauseMs: number;
  readonly nowMs: () => number;
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
}

/** A model at an upstream. */
export interface Target {
  readonly name: string;
  readonly model: string;
}

export interface Candidate extends Target {
  /** Above zero: its share of the requests while all are healthy. */
  readonly weight: number;
}

/** Permission to send one request. Its result must be reported, or a probe blocks the next one for `maxPauseMs`. */
export interface Attempt extends Target {
  /** Called again when more is known: for a stream when it begins, and when it ends. */
  report(sign: HealthSign): void;
}

export type Choice =
  | { readonly kind: 'chosen'; readonly attempt: Attempt }
  /** No candidate may be called now; the first one may be after `retryAfterMs`, if there is any candidate. */
  | { readonly kind: 'none'; readonly retryAfterMs?: number };

export interface UpstreamHealth {
  /**
   * Chooses by weight and recent success. Candidates must not include those that this request has already tried.
   * @param voter names the caller: one caller's failures alone do not close a model to others. Each attempt without it counts
   * as another caller's
   */
  choose(candidates: readonly Candidate[], voter?: string): Choice;
  /** `open`: receives no requests. `probing`: receives one request, to test whether it has recovered. */
  circuitOf(target: Target): 'closed' | 'open' | 'probing';
}

interface State {
  /** The voters with failures since the last success. */
  readonly votes: Set<string | symbol>;
  /** How often the circuit was opened in a row. */
  openings: number;
  /** Set while the circuit is open; past it, a probe may go. */
  openUntilMs: number | undefined;
  probingUntilMs: number;
  /** By a Retry-After. */
  blockedUntilMs: number;
  /** The exponentially weighted share of successes. */
  share: number;
  /** Increased when the circuit opens: results of older attempts are then ignored. */
  era: number;
}

/** How much one attempt moves the share of successes. */
const shareStep = 0.2;
/** The part of a weight that remains when everything fails, so that the candidate is still tried sometimes. */
const minShare = 0.05;

/**
 * The health of upstreams as one process sees it, without I/O or a clock. Each upstream has a circuit breaker, and
 * each of its models another: a target receives requests while both are closed.
 */
export function createUpstreamHealth(options: HealthOptions): UpstreamHealth {
  const { nowMs, random } = options;
  const states = new Map<string, State>();

  const stateOf = (key: string): State => {
    const known = states.get(key) ?? newState();
    states.set(key, known);
    return known;
  };
  const statesOf = ({ name, model }: Target): readonly [State, State] => [
    stateOf(name),
    // names contain no blanks
    stateOf(`${name} ${model}`),
  ];
  const readyAtMs = (target: Target): number =>
    Math.max(
      ...statesOf(target).map(({ blockedUntilMs, openUntilMs = 0, probingUntilMs }) =>
        Math.max(blockedUntilMs, openUntilMs, probingUntilMs),
      ),
    );
  const shareOf = (target: Target): number => statesOf(target).reduce((all, { share }) => all * share, 1);
  const open = (state: State): void => {
    state.openings += 1;
    state.era += 1;
    state.votes.clear();
    state.probingUntilMs = 0;
    const pauses = { firstMs: options.firstPauseMs, longestMs: options.maxPauseMs };
    state.openUntilMs = nowMs() + backOffMs(pauses, state.openings - 1);
  };
  const judge = (state: State, era: number, kind: HealthSign['kind'], voter: string | symbol): void => {
    if (kind === 'success') state.share += (1 - state.share) * shareStep;
    if (kind === 'failure') state.share -= (state.share - minShare) * shareStep;
    if (era !== state.era) return;
    if (kind === 'success') close(state);
    else if (kind === 'neutral') state.probingUntilMs = 0;
    else if (kind === 'began') closeOnTrial(state, options.failuresToOpen);
    else {
      state.votes.add(voter);
      if (state.openUntilMs !== undefined || state.votes.size >= options.failuresToOpen) open(state);
    }
  };
  const begin = (target: Target, voter: string | undefined): Attempt => {
    const [upstream, model] = statesOf(target);
    const eras = [upstream.era, model.era] as const;
    for (const state of [upstream, model])
      if (state.openUntilMs !== undefined) state.probingUntilMs = nowMs() + options.maxPauseMs;
    const report = ({ kind, isOfUpstream = false, retryAfterSecs = 0 }: HealthSign): void => {
      const blocked = isOfUpstream ? upstream : model;
      blocked.blockedUntilMs = Math.max(blocked.blockedUntilMs, nowMs() + retryAfterSecs * 1000);
      const isFailure = kind === 'failure';
      // a failing model shows that its upstream was reached; an unreachable upstream shows nothing about the model
      judge(upstream, eras[0], isFailure && !isOfUpstream ? 'success' : kind, Symbol('attempt'));
      judge(model, eras[1], isFailure && isOfUpstream ? 'neutral' : kind, voter ?? Symbol('attempt'));
    };
    return { ...target, report };
  };

  return {
    choose(candidates, voter) {
      const now = nowMs();
      const free = candidates.filter((candidate) => readyAtMs(candidate) <= now);
      const chosen = pick(free, (candidate) => candidate.weight * shareOf(candidate), random());
      if (chosen)
        return { kind: 'chosen', attempt: begin({ name: chosen.name, model: chosen.model }, voter) };
      if (candidates.length === 0) return { kind: 'none' };
      const soonest = Math.min(...candidates.map(readyAtMs));
      return { kind: 'none', retryAfterMs: soonest - now };
    },
    circuitOf(target) {
      const notClosed = statesOf(target).filter(({ openUntilMs }) => openUntilMs !== undefined);
      if (notClosed.length === 0) return 'closed';
      return notClosed.some(({ probingUntilMs }) => probingUntilMs > nowMs()) ? 'probing' : 'open';
    },
  };
}

/** The gateway's key is invalid there, or its account has no money. */
const accountStatuses: ReadonlySet<number> = new Set([401, 402]);
/** At most upstreams limits are per model. Another 4xx may be caused by one caller. */
const modelStatuses: ReadonlySet<number> = new Set([408, 429]);
const upstreamCauses: ReadonlySet<UpstreamCause> = new Set([
  'unreachable',
  'connect_timeout',
  'invalid_request',
]);
const neutralCauses: ReadonlySet<UpstreamCause> = new Set([
  'aborted',
  'not_sent',
  'slow_reader',
  'too_large',
  'closed',
]);

/** What an answer, or the ending of a stream, shows about its upstream. */
export function healthSign(answer: UpstreamAnswer | StreamEnding): HealthSign {
  switch (answer.kind) {
    case 'busy':
      return { kind: 'neutral' };
    case 'completed':
      return { kind: 'success' };
    case 'streaming':
      return { kind: 'began' };
    case 'refused': {
      if (accountStatuses.has(answer.status)) return ofUpstream(answer.retryAfterSecs);
      const other = answer.fault === 'request' ? 'success' : 'neutral';
      return withPatience(modelStatuses.has(answer.status) ? 'failure' : other, answer.retryAfterSecs);
    }
    case 'failed': {
      const retryAfterSecs = 'retryAfterSecs' in answer ? answer.retryAfterSecs : undefined;
      if (upstreamCauses.has(answer.cause)) return ofUpstream(retryAfterSecs);
      return withPatience(neutralCauses.has(answer.cause) ? 'neutral' : 'failure', retryAfterSecs);
    }
  }
}

function ofUpstream(retryAfterSecs: number | undefined): HealthSign {
  return { ...withPatience('failure', retryAfterSecs), isOfUpstream: true };
}

function withPatience(kind: HealthSign['kind'], retryAfterSecs: number | undefined): HealthSign {
  return { kind, ...(retryAfterSecs !== undefined && { retryAfterSecs }) };
}

function newState(): State {
  return {
    votes: new Set(),
    openings: 0,
    openUntilMs: undefined,
    probingUntilMs: 0,
    blockedUntilMs: 0,
    share: 1,
    era: 0,
  };
}

function close(state: State): void {
  state.votes.clear();
  state.openings = 0;
  state.openUntilMs = undefined;
  state.probingUntilMs = 0;
}

/** The next failure opens the circuit again, for longer than before. */
function closeOnTrial(state: State, failuresToOpen: number): void {
  if (state.openUntilMs === undefined) return;
  state.votes.clear();
  while (state.votes.size < failuresToOpen - 1) state.votes.add(Symbol('earlier'));
  state.openUntilMs = undefined;
  state.probingUntilMs = 0;
}

/** A random candidate, with a probability proportional to its weight. */
function pick<T>(items: readonly T[], weightOf: (item: T) => number, random: number): T | undefined {
  let rest = random * items.reduce((sum, item) => sum + weightOf(item), 0);
  for (const item of items) {
    rest -= weightOf(item);
    if (rest < 0) return item;
  }
  return items.at(-1);
}
