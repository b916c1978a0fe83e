import { backOffMs } from '../../values/back-off.ts';
import { pause } from '../../runtime/pause.ts';
import { type RpcAnswer, RpcError, type RpcUnavailable } from './json-rpc.ts';

const maxRetries = 3;
const pauses = { firstMs: 200, longestMs: 800 };

/** Repeats a request if the node may only have been busy; any other answer is final. */
export async function withRetries<T>(askOnce: () => Promise<RpcAnswer<T>>): Promise<RpcAnswer<T>> {
  for (let failures = 0; ; failures += 1) {
    const answer = await askOnce();
    if (answer.kind === 'answer' || failures === maxRetries || !isPassing(answer)) return answer;
    await pause(backOffMs(pauses, failures));
  }
}

function isPassing({ cause, error }: RpcUnavailable): boolean {
  if (error instanceof RpcError) return /rate limit|too many requests|per second/i.test(error.reason);
  return /^(?:timeout|connection|status_429|status_5\d\d)$/.test(cause);
}
