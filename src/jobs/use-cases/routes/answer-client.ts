import type { Header } from '../../rules/route-headers.ts';

/** A client that waits for the answer that it has paid for. */
export interface AnswerClient {
  /** Status and headers; does nothing once they were given. */
  begin(head: AnswerHead): void;
  /** Status, headers and the whole body, in place of the other steps. */
  whole(head: AnswerHead, body: Buffer): void;
  /** Resolves when the client can take more, or has left. */
  write(piece: Buffer): Promise<void>;
  /** The answer is complete. The trailers follow it if the answer has no declared length. */
  end(trailers: readonly Header[]): void;
  /** The answer is not complete, and the client has to notice that. */
  cut(): void;
  /** Aborts once the client has left. */
  readonly left: AbortSignal;
}

export interface AnswerHead {
  readonly status: number;
  readonly headers: readonly Header[];
  /** It was given to the same request before. */
  readonly isReplayed?: boolean;
}
