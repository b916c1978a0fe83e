/** Whether calls can be handed to the broker. */
export type BrokerState =
  | { readonly kind: 'ready' }
  /** It cannot be reached, or has no quorum: calls wait in the database. */
  | { readonly kind: 'away'; readonly detail: string }
  /** It contradicts the configuration: the operator has to change one of them. */
  | { readonly kind: 'wrong'; readonly mistakes: readonly string[] }
  /** It answers, and did not store the last call: its stream is full, for instance. */
  | { readonly kind: 'refusing'; readonly detail: string };

/** What is wrong with the broker; undefined if nothing is. */
export function describeBroker(state: BrokerState): string | undefined {
  switch (state.kind) {
    case 'ready':
      return undefined;
    case 'away':
      return `away: ${state.detail}`;
    case 'wrong':
      return `contradicts the configuration: ${state.mistakes.join('; ')}`;
    case 'refusing':
      return `does not store calls: ${state.detail}`;
  }
}

/** A call for one runner. */
export interface CallMessage {
  readonly runner: string;
  readonly serviceId: number;
  readonly jobIndex: number;
  /** The broker stores one message with this id while it remembers it. */
  readonly messageId: string;
  /** Metadata and signatures, as a push has them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export type PublishAnswer =
  /** On all its replicas' majority, now or before. */
  | { readonly kind: 'stored' }
  /** Not stored: the stream is full, for instance. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Stored or not. */
  | { readonly kind: 'unanswered'; readonly reason: string };

export type WaitingAnswer =
  /** Messages that no runner has taken. */
  | { readonly kind: 'counted'; readonly messages: number }
  | { readonly kind: 'unanswered'; readonly reason: string };

export interface Broker {
  state(): BrokerState;
  /** Never rejects. Repeats an unanswered attempt: the message id keeps the broker from storing it twice. */
  publish(call: CallMessage): Promise<PublishAnswer>;
  /** Never rejects. */
  countWaiting(runner: string): Promise<WaitingAnswer>;
  /** Takes no more results and lease requests, finishes those that it has, and disconnects. */
  close(): Promise<void>;
}

/** What runners send. */
export interface BrokerHandlers {
  /** `again`: it could not be recorded now, and is delivered again. */
  onResult(runner: string, message: Uint8Array): Promise<'done' | 'again'>;
  /** Undefined if it gets no answer. */
  onLeaseRequest(runner: string, message: Uint8Array): Promise<Uint8Array | undefined>;
  onState(state: BrokerState): void;
}
