import {
  type Answer,
  answerOf,
  type Exchange,
  jsonAnswer,
  type Reply,
  startHttpProxy,
} from './http-proxy.ts';
import { whenOver } from './shared.ts';

type Operation = 'verify' | 'settle' | 'supported';

/** What the proxy does with one operation instead of forwarding it. */
export type Fault =
  | 'pass'
  | 'html'
  | 'server_error'
  | 'hang'
  | 'cut_before'
  | 'cut_after'
  | { readonly answer: object | Promise<object> }
  /** Answers 500 to such payments and forwards the others. */
  | { readonly failIf: (request: FacilitatorBody) => boolean }
  /** Forwards it and changes the answer. */
  | { readonly change: (answer: Record<string, unknown>) => object | Promise<object> };

/** As much of a request as tests decide by. */
export interface FacilitatorBody {
  readonly paymentPayload: { readonly payload: { readonly authorization: { readonly from: string } } };
}

/** A settle request is refused before anything is broadcast. */
export const failsBeforeBroadcast = {
  answer: {
    success: false,
    errorReason: 'invalid_exact_evm_insufficient_balance',
    transaction: '',
    network: 'eip155:84532',
  },
} as const;

/** A proxy between a gateway and a real facilitator that injects faults on command, until the test is over. */
export interface FacilitatorProxy {
  readonly url: string;
  readonly faults: Partial<Record<Operation, Fault>>;
  readonly seen: Operation[];
  /** The accepted bearer token; other requests get 401. */
  admits: (request: Exchange) => boolean;
  close(): Promise<void>;
}

export async function startFacilitatorProxy(target: string): Promise<FacilitatorProxy> {
  const own: Pick<FacilitatorProxy, 'faults' | 'seen' | 'admits'> = {
    faults: {},
    seen: [],
    admits: () => true,
  };
  const proxy = await startHttpProxy(
    () => target,
    async (exchange, forward) => {
      const operation = exchange.path.slice(1) as Operation;
      own.seen.push(operation);
      if (!own.admits(exchange)) return answerOf(401, 'text/plain');
      return misbehave(own.faults[operation] ?? 'pass', exchange, forward);
    },
  );
  whenOver(() => proxy.close());
  return Object.assign(own, proxy);
}

async function misbehave(fault: Fault, { body }: Exchange, forward: () => Promise<Answer>): Promise<Reply> {
  if (fault === 'hang') return new Promise(() => {});
  if (fault === 'html') return answerOf(200, 'text/html', '<html>It works!</html>');
  if (fault === 'server_error') return answerOf(502, 'text/html', 'Bad Gateway');
  if (fault === 'cut_before') return 'cut';
  if (typeof fault === 'object' && 'answer' in fault) return jsonAnswer(await fault.answer);
  const isFailed =
    typeof fault === 'object' &&
    'failIf' in fault &&
    fault.failIf(JSON.parse(String(body)) as FacilitatorBody);
  if (isFailed) return answerOf(500, 'application/json', '{"error":"malformed"}');
  const passed = await forward();
  if (fault === 'cut_after') return 'cut';
  if (typeof fault !== 'object' || 'failIf' in fault) return passed;
  return jsonAnswer(await fault.change(JSON.parse(String(passed.body)) as Record<string, unknown>));
}
