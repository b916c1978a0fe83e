import { type ChatRequest, readChatRequest } from '../../../src/chat/rules/chat-request.ts';

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

/** The least time that this thread's own work took, of several runs: other programs on the machine do not count. */
export function fastestMs(work: () => unknown): number {
  const timesMs = Array.from({ length: 5 }, () => {
    const start = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(start);
    return (user + system) / 1_000;
  });
  return Math.min(...timesMs);
}
