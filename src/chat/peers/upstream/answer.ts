import type { ChatError, ChatProgress } from '../../rules/chat-answer.ts';

/** Why an upstream gave no answer, or not the whole of one. */
export type UpstreamCause =
  /** No connection: refused, no such name, TLS. */
  | 'unreachable'
  | 'connect_timeout'
  | 'first_byte_timeout'
  | 'total_timeout'
  /** While the upstream was waiting for the reader of its stream: the total time-out, or another request needed the slot. */
  | 'slow_reader'
  /** Silence in the middle of an answer. */
  | 'stalled'
  /** The connection or the stream ended before the answer did. */
  | 'cut'
  /** Neither 200 nor 4xx: redirects are not followed. */
  | `status_${number}`
  /** Not HTTP, JSON or an event stream, or JSON that is not an answer. */
  | 'malformed'
  | 'too_large'
  | 'html'
  /** The content type is a stream when JSON was requested, or JSON when a stream was. */
  | 'wrong_type'
  | 'empty'
  /** An error object instead of an answer, or in the middle of one. */
  | 'error_object'
  /** By the caller's signal, or `abort`. */
  | 'aborted'
  /** By the caller's signal, before the request was sent: the upstream has done nothing for it. */
  | 'not_sent'
  /** This upstream was closed. */
  | 'closed'
  /** The request cannot be sent: the key is not a valid header value. */
  | 'invalid_request';

/** How an exchange failed. */
export interface Fault {
  readonly kind: 'fault';
  readonly cause: UpstreamCause;
  /** For the log only: may quote the upstream. */
  readonly detail: string;
  /** The upstream's own error. */
  readonly error?: ChatError;
}

/** A whole answer: status 200, JSON with at least one choice. */
export interface UpstreamCompleted extends ChatProgress {
  readonly kind: 'completed';
  readonly body: Buffer;
  /** To the first byte of the body. */
  readonly firstByteMs: number;
  /** To the last byte. */
  readonly latencyMs: number;
}

/** One event of a stream. All events together are the upstream's bytes unchanged, up to the end of `[DONE]`. */
export interface StreamChunk {
  /** Bytes that end in a blank line, so that the gateway can add an event. */
  readonly raw: Buffer;
  /** `usage`: has no choice, so it is omitted for a client that did not request usage. `other`: a comment. */
  readonly role: 'part' | 'usage' | 'done' | 'other';
}

export type StreamEnding = ChatProgress & { readonly latencyMs: number } & (
    | {
        readonly kind: 'completed';
        /** False when every choice and the HTTP body ended, but the upstream sent no `[DONE]`. */
        readonly isTerminated: boolean;
      }
    | ({ readonly kind: 'failed'; readonly beforeFirstByte: false } & Omit<Fault, 'kind'>)
  );

/** A stream whose first event has arrived and is valid. */
export interface UpstreamStreaming {
  readonly kind: 'streaming';
  /** To the first event with data. */
  readonly firstByteMs: number;
  /**
   * To be read once, one item at a time: the events that came together. Leaving the loop early aborts. An upstream waits for
   * a slow reader. Never throws.
   */
  readonly chunks: AsyncIterable<readonly StreamChunk[]>;
  /** Known once the chunks are read to their end, or after an abort; never rejects. */
  readonly ending: Promise<StreamEnding>;
  /** Closes the connection immediately; unread bytes are lost. */
  abort(): void;
}

/** The upstream answered 4xx. */
export interface UpstreamRefused {
  readonly kind: 'refused';
  readonly status: number;
  /** `request`: every upstream would refuse it. `upstream`: its key, limits or models; another upstream may accept. */
  readonly fault: 'request' | 'upstream';
  readonly error?: ChatError;
  readonly retryAfterSecs?: number;
}

/** No part of an answer was passed on: another upstream may be tried. */
export interface UpstreamFailed extends Omit<Fault, 'kind'> {
  readonly kind: 'failed';
  readonly beforeFirstByte: true;
  readonly retryAfterSecs?: number;
}

/** The upstream has its maximum of concurrent requests; nothing was sent. */
export interface UpstreamBusy {
  readonly kind: 'busy';
}

export type UpstreamAnswer =
  | UpstreamCompleted
  | UpstreamStreaming
  | UpstreamRefused
  | UpstreamFailed
  | UpstreamBusy;

export function faultOf(cause: UpstreamCause, detail: string, error?: ChatError): Fault {
  return { kind: 'fault', cause, detail, ...(error && { error }) };
}

export function failedBy({ cause, detail, error }: Fault, retryAfterSecs?: number): UpstreamFailed {
  return {
    kind: 'failed',
    cause,
    detail,
    beforeFirstByte: true,
    ...(error && { error }),
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  };
}
