import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type ChatProgress, type ChatReading, createChatReader } from '../../rules/chat-answer.ts';
import { estimateUsage, type PromptSample, type UsageEstimate } from '../../rules/token-count.ts';
import { late, within } from '../../../base/runtime/within.ts';

const task = 'tollbook: long work of chat';
/** Of one piece of work: far more than an honest answer takes. */
const longestMs = 5_000;
/** Beyond it the thread ends, and nothing else. */
const maxMemoryMib = 512;
/** An answer that lists the likeliest tokens for each token has some hundred values a token. */
const answerBounds = { maxDepth: 128, maxMarks: 2_000_000 };
/** Text of which no tokens were counted. */
const unitsPerToken = 3;

type Work =
  | { readonly kind: 'read'; readonly body: Uint8Array }
  | { readonly kind: 'estimate'; readonly prompt: PromptSample; readonly written: string };

/** What came of reading an answer. */
export interface ReadAnswer {
  readonly reading: ChatReading;
  readonly progress: ChatProgress;
}

/** One for the process, started when it is first needed; each piece of work waits for the one before. */
let thread: Worker | undefined;
let last: Promise<unknown> = Promise.resolve();

/** Reads a long answer without keeping others waiting; undefined if that takes too long, or too much memory. */
export function readAside(body: Buffer): Promise<ReadAnswer | undefined> {
  return doAside<ReadAnswer>({ kind: 'read', body });
}

/** Estimates a usage: the vocabulary alone takes an eighth of a second to load. */
export async function estimateAside(prompt: PromptSample, written: string): Promise<UsageEstimate> {
  return (
    (await doAside<UsageEstimate>({ kind: 'estimate', prompt, written })) ?? {
      promptTokens: Math.ceil(prompt.units / unitsPerToken),
      completionTokens: Math.ceil(written.length / unitsPerToken),
      isEstimate: true,
    }
  );
}

function doAside<T>(work: Work): Promise<T | undefined> {
  const done = last.then(() => doNow<T>(work));
  last = done;
  return done;
}

async function doNow<T>(work: Work): Promise<T | undefined> {
  thread ??= startThread();
  const used = thread;
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  used.once('message', resolve);
  used.once('exit', () => resolve(undefined));
  used.ref();
  used.postMessage(work, []);
  const result = await within(longestMs, promise);
  used.unref();
  used.removeAllListeners('message').removeAllListeners('exit');
  if (result !== late && result !== undefined) return result;
  if (thread === used) thread = undefined;
  void used.terminate();
  return undefined;
}

function startThread(): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: maxMemoryMib };
  const worker = new Worker(new URL(import.meta.url), { workerData: { task }, execArgv: [], resourceLimits });
  // one that ran out of memory: its work gets no result
  worker.on('error', () => {});
  return worker;
}

async function doWork(work: Work): Promise<ReadAnswer | UsageEstimate> {
  if (work.kind === 'estimate') return estimateUsage(work.prompt, [work.written]);
  const reader = createChatReader(answerBounds);
  const reading = reader.readBody(Buffer.from(work.body).toString('utf8'));
  return { reading, progress: reader.progress };
}

if (!isMainThread && (workerData as { readonly task?: string } | null)?.task === task)
  parentPort?.on(
    'message',
    (work: Work) => void doWork(work).then((result) => parentPort?.postMessage(result, [])),
  );
