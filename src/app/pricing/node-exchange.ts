import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { ContextValues } from '@connectrpc/connect';
import type { UniversalHandlerFn, UniversalServerResponse } from '@connectrpc/connect/protocol';

export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;

/**
 * Answers a request of Node with a handler of Connect. Connect's own adapter throws for a Host header that is not a host, which ends the
 * process, and destroys the request when a message is too large, which loses the answer over HTTP/1.1 and keeps the stream over HTTP/2.
 * Resolves once the answer was passed on, or the client has left.
 */
export async function exchange(
  handler: UniversalHandlerFn,
  { request, response }: { readonly request: NodeRequest; readonly response: NodeResponse },
  contextValues: ContextValues,
): Promise<void> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  const answer = await handler({
    httpVersion: request.httpVersion,
    method: request.method ?? '',
    // handlers read the query alone; the host is whatever the client says
    url: `http://localhost${request.url ?? '/'}`,
    header: headersOf(request),
    // the handler stops reading at its limit; the answer comes before the end of the request
    body: request.iterator({ destroyOnReturn: false }),
    signal: left.signal,
    contextValues,
  });
  const body = answer.body ? Buffer.concat(await Array.fromAsync(answer.body)) : bodyless(answer);
  if (left.signal.aborted) return;
  endEarly(request, response);
  response.statusCode = answer.status;
  for (const [name, value] of answer.header ?? []) response.setHeader(name, value);
  response.addTrailers(trailersOf(answer));
  response.end(body);
}

/** Answers without a handler. */
export function answerText(request: NodeRequest, response: NodeResponse, status: number, text: string): void {
  endEarly(request, response);
  response.statusCode = status;
  response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.end(`${text}\n`);
}

/** Ends a request without an answer: its stream of HTTP/2, or its connection. */
export function cut(request: NodeRequest): void {
  // with NO_ERROR the stream would stay until its buffered bytes are read
  if ('stream' in request) request.stream.close(constants.NGHTTP2_CANCEL);
  else request.destroy();
}

/** Whether the whole answer was passed on, of a response that is closed. */
export function isAnswered(response: NodeResponse): boolean {
  if (!('stream' in response)) return response.writableFinished;
  // Node finishes an HTTP/2 stream that the client resets as well
  return response.stream.headersSent && !response.stream.aborted;
}

function headersOf({ headers }: NodeRequest): Headers {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !name.startsWith(':')) all.set(name, String(value));
  return all;
}

/** What a handler answers without a word. */
function bodyless({ status }: UniversalServerResponse): string {
  if (status === 415)
    return 'The content type must be application/json, application/proto, application/grpc or application/grpc-web.\n';
  return status === 405 ? 'The method must be POST.\n' : '';
}

function trailersOf({ trailer = new Headers() }: UniversalServerResponse): Record<string, string> {
  const message = trailer.get('grpc-message');
  if (message !== null) trailer.set('grpc-message', grpcMessage(decodeURIComponent(message)));
  return Object.fromEntries(trailer);
}

/**
 * A message of gRPC encodes percent signs and characters outside printable ASCII. Connect encodes more; clients that decode with `decodeURI`,
 * such as grpc-js, would show a colon as `%3A`.
 */
function grpcMessage(text: string): string {
  return text.replaceAll(/[^\u0020-\u0024\u0026-\u007e]+/gu, encodeURIComponent);
}

/** How long a client may keep sending over HTTP/1.1 after its answer: an immediate reset may lose the answer. */
const lingerMs = 1_000;

/** Ends a request that is answered before all of it has arrived. */
function endEarly(request: NodeRequest, response: NodeResponse): void {
  if ('stream' in request) {
    const { stream } = request;
    // the trailers are the last of an answer, and are sent in an immediate that precedes this one; then the client gets the signal to stop
    stream.once('wantTrailers', () =>
      setImmediate(() => {
        if (request.readableEnded) return;
        stream.close(constants.NGHTTP2_NO_ERROR);
        request.resume();
      }),
    );
    return;
  }
  response.once('finish', () => {
    if (request.complete) return;
    request.resume();
    const timer = setTimeout(() => void request.destroy(), lingerMs);
    request.once('close', () => clearTimeout(timer));
  });
}
