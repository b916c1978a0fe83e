/** What of `connect()` of `@nats-io/transport-node` is used. */
export interface BrokerConnection {
  request(
    subject: string,
    payload: Uint8Array,
    options: { readonly timeout: number },
  ): Promise<{ readonly data: Uint8Array }>;
}

/** What of a message of `@nats-io/jetstream` is used. */
export interface BrokerMessage {
  readonly data: Uint8Array;
  readonly headers?: { keys(): string[]; get(name: string): string } | undefined;
  ack(): void;
  nak(waitMs?: number): void;
}

/** What of `jetstream()` of `@nats-io/jetstream` is used. */
export interface BrokerStream {
  publish(
    subject: string,
    payload: Uint8Array,
    options: { readonly msgID: string; readonly timeout: number },
  ): Promise<unknown>;
  readonly consumers: {
    get(
      stream: string,
      consumer: string,
    ): Promise<{
      fetch(options: {
        readonly max_messages: number;
        readonly expires: number;
      }): Promise<AsyncIterable<BrokerMessage> & { stop(): void }>;
    }>;
  };
}
