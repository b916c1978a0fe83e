import { type ChatRequest, readChatRequest } from '../../../src/domain/chat/chat-request.ts';

/** A good body with more or other parameters; undefined leaves one out. */
export function chatBody(extra: object): Buffer {
  const good = { model: 'some-model', messages: [{ role: 'user', content: 'hello' }] };
  return Buffer.from(JSON.stringify({ ...good, ...extra }));
}

export function chatRequest(extra: object): ChatRequest {
  const read = readChatRequest(chatBody(extra));
  if ('invalid' in read) throw new Error(read.invalid.body.error.message);
  return read;
}

/** The least time of three runs: what the work takes itself, without what other programs take meanwhile. */
export function fastestMs(work: () => unknown): number {
  const timesMs = Array.from({ length: 3 }, () => {
    const startMs = performance.now();
    work();
    return performance.now() - startMs;
  });
  return Math.min(...timesMs);
}
