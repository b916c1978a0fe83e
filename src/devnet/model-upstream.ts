import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { HttpProblem, type ListenOptions, readBody, serve } from './http-service.ts';
import { answerOf, modelRequest } from './model-answer.ts';
import { type Fault, type FaultOptions, faultIn, jsonSteps, type Step, stepsOf } from './model-faults.ts';

export interface ModelUpstreamOptions extends ListenOptions, FaultOptions {
  /** What a prompt calls it by in `fault:NAME@UPSTREAM`. Default: `model`. */
  readonly name?: string;
  /** Default: `devnet-small` and `devnet-large`. */
  readonly models?: readonly string[];
  /** The bearer token it asks for; none by default. */
  readonly key?: string;
  /** How long it takes over each piece of an answer. Default: no time. */
  readonly pieceMs?: number;
}

/** A requested completion. */
export interface ModelCall {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The client's port: the same again if a connection is used again. */
  readonly clientPort: number | undefined;
  /** Of the answer's body, so far taken by the connection. */
  readonly sentBytes: number;
  /** `dropped`: the connection ended before the answer did. */
  readonly state: 'answering' | 'answered' | 'dropped';
}

export interface ModelUpstream {
  /** With the `/v1` of a client's base URL. */
  readonly url: string;
  /** The last thousand, oldest first. */
  readonly calls: readonly ModelCall[];
  /** Gives every further completion this fault, whatever its prompt requests; undefined ends it. */
  failWith(fault: Fault | undefined): void;
  readonly close: () => Promise<void>;
}

type Call = { -readonly [key in keyof ModelCall]: ModelCall[key] };

const maxBodyBytes = 16 * 1024 * 1024;
const callsKept = 1000;
const createdSecs = 1_700_000_000;

/** An error in OpenAI's envelope. */
class ModelProblem extends HttpProblem {
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(status, message);
    this.code = code;
  }
}

/**
 * Starts a small upstream that implements OpenAI's API: `GET /v1/models` and `POST /v1/chat/completions`, streaming
 * and not. Its answers are a function of the prompt (model-answer.ts), and so are its faults (model-faults.ts).
 * @throws when the port is taken
 */
export async function startModelUpstream(options: ModelUpstreamOptions = {}): Promise<ModelUpstream> {
  const calls: Call[] = [];
  const models = options.models ?? ['devnet-small', 'devnet-large'];
  let fault: Fault | undefined;

  const complete = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await readBody(request, maxBodyBytes)).toString('utf8');
    const { headers, socket } = request;
    const call: Call = { headers, body, clientPort: socket.remotePort, sentBytes: 0, state: 'answering' };
    calls.push(call);
    if (calls.length > callsKept) calls.shift();
    const completion = readRequest(body, models);
    const present = fault ?? faultIn(completion, options.name ?? 'model');
    await play(stepsOf(completion, answerOf(completion), present, options), response, call, options.pieceMs);
  };
  const service = await serve(async (request, response) => {
    try {
      requireKey(request, options.key);
      const route = `${request.method} ${request.url}`;
      if (route === 'POST /v1/chat/completions') await complete(request, response);
      else if (route === 'GET /v1/models') await play(jsonSteps(200, listOf(models)), response);
      else throw new ModelProblem(404, 'not_found', `There is no ${route}.`);
    } catch (error) {
      await play(problemSteps(error), response);
    }
  }, options);

  return {
    url: `${service.url}/v1`,
    calls,
    failWith: (next) => {
      fault = next;
    },
    close: () => service.close(),
  };
}

async function play(
  steps: readonly Step[],
  response: ServerResponse,
  call: Pick<Call, 'sentBytes' | 'state'> = { sentBytes: 0, state: 'answering' },
  pieceMs = 0,
): Promise<void> {
  const disconnected = new AbortController();
  response.once('close', () => disconnected.abort());
  for (const step of steps) {
    if (disconnected.signal.aborted) break;
    if (step === 'cut') cut(response);
    else if (step === 'hang') await until(once(response, 'close'));
    else if ('waitMs' in step) await until(wait(step.waitMs, undefined, disconnected));
    else if ('status' in step) response.writeHead(step.status, { ...step.headers }).flushHeaders();
    else {
      if (pieceMs > 0) await until(wait(pieceMs, undefined, disconnected));
      if (await isWritten(response, step.write)) call.sentBytes += Buffer.byteLength(step.write);
    }
  }
  call.state = disconnected.signal.aborted || response.destroyed ? 'dropped' : 'answered';
  response.end();
}

/** A reset where nothing was answered; else an end that lets the client read earlier bytes. */
function cut({ socket, headersSent }: ServerResponse): void {
  if (headersSent) socket?.destroy();
  else socket?.resetAndDestroy();
}

/** Resolves when the connection has taken the text, or will take no more: a slow client holds it up. */
function isWritten(response: ServerResponse, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const onClose = (): void => resolve(false);
    // Node may forget the callback of a write that is held up when the connection goes.
    response.once('close', onClose);
    response.write(text, (error) => {
      response.off('close', onClose);
      resolve(!error);
    });
  });
}

/** Waits for something that the client's going may cut short. */
async function until(event: Promise<unknown>): Promise<void> {
  await event.catch(() => undefined);
}

function requireKey({ headers }: IncomingMessage, key: string | undefined): void {
  if (key === undefined || headers.authorization === `Bearer ${key}`) return;
  throw new ModelProblem(401, 'invalid_api_key', 'Incorrect API key provided.');
}

function readRequest(body: string, models: readonly string[]): z.infer<typeof modelRequest> {
  const parsed = modelRequest.safeParse(parseJson(body));
  if (!parsed.success) throw new ModelProblem(400, 'invalid_request', z.prettifyError(parsed.error));
  const { model } = parsed.data;
  if (models.includes(model)) return parsed.data;
  throw new ModelProblem(404, 'model_not_found', `The model ${model} does not exist.`);
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new ModelProblem(400, 'invalid_request', 'The body is not JSON.');
  }
}

function listOf(models: readonly string[]): object {
  const data = models.map((id) => ({ id, object: 'model', created: createdSecs, owned_by: 'devnet' }));
  return { object: 'list', data };
}

function problemSteps(error: unknown): readonly Step[] {
  const message = error instanceof Error ? error.message : String(error);
  const status = error instanceof HttpProblem ? error.status : 500;
  const code = error instanceof ModelProblem ? error.code : null;
  return jsonSteps(status, { error: { message, type: 'invalid_request_error', param: null, code } });
}
