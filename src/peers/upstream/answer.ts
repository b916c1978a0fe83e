import type { ChatError, ChatProgress } from '../../domain/chat/chat-answer.ts';

/** Why an upstream gave no answer, or not the whole of one. */
export type UpstreamCause =
  /** No connection: refused, no such name, TLS. */
  | 'unreachable'
  | 'connect_timeout'
  | 'first_byte_timeout'
  | 'total_timeout'
  /** The total time-out, while the upstream had to wait for who reads its stream. */
  | 'slow_reader'
  /** Silence in the middle of an answer. */
  | 'stalled'
  /** The connection or the stream ended before the answer did. */
  | 'cut'
  /** Neither 200 nor 4xx: redirects are not followed. */
  | `status_${number}`
  /** Not HTTP, not JSON, no event stream, or JSON that is no answer. */
  | 'malformed'
  | 'too_large'
  | 'html'
  /** Labelled as a stream where none was asked for, or as JSON where one was. */
  | 'wrong_type'
  | 'empty'
  /** An error in place of an answer, or behind its beginning. */
  | 'error_object'
  /** By the caller's signal, or `abort`. */
  | 'aborted'
  /** This upstream was closed. */
  | 'closed'
  /** Our own request cannot be sent: a key that no header can hold. */
  | 'invalid_request';

/** How an exchange failed. */
export interface Fault {
  readonly kind: 'fault';
  readonly cause: UpstreamCause;
  /** For the log only: may quote the upstream. */
  readonly detail: string;
  /** What the upstream said of it. */
  readonly error?: ChatError;
}

/** A whole answer: status 200, JSON with at least one choice. */
export interface UpstreamCompleted extends ChatProgress {
  readonly kind: 'completed';
  readonly body: Buffer;
  /** To the first byte of the body. */
  readonly firstByteMs: number;
  /** To its last. */
  readonly latencyMs: number;
}

/** One event of a stream. All of them in a row are the upstream's bytes as they came, up to the end of `[DONE]`. */
export interface StreamChunk {
  /** Bytes that end in a blank line, so that an event of one's own may follow. */
  readonly raw: Buffer;
  /** `usage`: no choice in it, so that it may be left out for a client that asked for none. `other`: a comment. */
  readonly role: 'part' | 'usage' | 'done' | 'other';
}

export type StreamEnding = ChatProgress & { readonly latencyMs: number } & (
    | {
        readonly kind: 'completed';
        /** False when every choice ended, and the body as HTTP ends one, but the upstream sent no `[DONE]`. */
        readonly isTerminated: boolean;
      }
    | ({ readonly kind: 'failed'; readonly beforeFirstByte: false } & Omit<Fault, 'kind'>)
  );

/** A stream whose first event is there and sound. */
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
  /** Closes the connection at once; what was not read is lost. */
  abort(): void;
}

/** The upstream answered 4xx. */
export interface UpstreamRefused {
  readonly kind: 'refused';
  readonly status: number;
  /** `request`: no other upstream would take it. `upstream`: its key, its limits, its models; another may do. */
  readonly fault: 'request' | 'upstream';
  readonly error?: ChatError;
  readonly retryAfterSecs?: number;
}

/** There is no answer, and nothing of one was given out: another upstream may be tried. */
export interface UpstreamFailed extends Omit<Fault, 'kind'> {
  readonly kind: 'failed';
  readonly beforeFirstByte: true;
  readonly retryAfterSecs?: number;
}

/** So many requests as it may have are under way; nothing was sent. */
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
