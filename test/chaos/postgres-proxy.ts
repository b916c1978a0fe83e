import { once } from 'node:events';
import net, { type Socket } from 'node:net';
import { boundPort } from '../../src/devnet/ports.ts';
import { appendedTypes, backendPid, createFrameReader, type Frame, lostServer } from './postgres-frames.ts';

/** A message on its way to the database: an append, or the end of any other question. */
export interface Message {
  /** Of the events it appends; undefined if it is not an append. */
  readonly appends: ReadonlySet<string> | undefined;
  readonly backendPid: number | undefined;
  /** Its text; only useful for an append. */
  readonly text: () => string;
  /** Sends it; the answer goes back as it comes. */
  pass(): void;
  /** Sends it and resolves when it is answered in full; the answer is kept back. Rejects if the server is gone. */
  send(): Promise<void>;
  /** The same, with the message sent twice: the first answer counts. */
  sendTwice(): Promise<void>;
  /** Sends its first half. */
  sendHalf(): void;
  /** Hands the kept answer over. */
  deliver(): void;
  /** Answers as a pooler does that has lost the server, and ends the connection. */
  refuse(): void;
  /** Ends the connection, on both sides. */
  cut(): void;
}

export interface PostgresProxy {
  readonly port: number;
  /** Messages that are being dealt with. */
  readonly pending: () => number;
  /** Cuts all connections, and new ones until it is opened again. */
  block(): void;
  open(): void;
  close(): Promise<void>;
}

export type Behave = (message: Message) => Promise<void>;

/**
 * A proxy between a gateway and PostgreSQL that parses just enough of the protocol to see which events are appended.
 * What a client has sent arrives even if that client is gone by then.
 */
export async function startPostgresProxy(socketPath: () => string, behave: Behave): Promise<PostgresProxy> {
  const wires = new Set<Wire>();
  let isBlocked = false;
  const server = net.createServer((client) => {
    if (isBlocked) return void client.destroy();
    const wire = new Wire(client, net.connect(socketPath()), behave, () => wires.delete(wire));
    wires.add(wire);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: boundPort(server),
    pending: () => [...wires].filter(({ busy }) => busy).length,
    block() {
      isBlocked = true;
      for (const wire of wires) wire.cut();
    },
    open: () => void (isBlocked = false),
    async close() {
      for (const wire of wires) wire.cut();
      server.close();
      await once(server, 'close');
    },
  };
}

class Wire {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #behave: Behave;
  readonly #readClient = createFrameReader('client');
  readonly #readServer = createFrameReader('server');
  readonly #waiting: Frame[] = [];
  #backendPid: number | undefined;
  #kept: Buffer[] | undefined;
  #onReady: { resolve: () => void; reject: (error: Error) => void } | undefined;
  busy = false;

  constructor(client: Socket, server: Socket, behave: Behave, onEnd: () => void) {
    this.#client = client;
    this.#server = server;
    this.#behave = behave;
    client.setNoDelay(true);
    client.on('error', () => {}).on('data', (chunk: Buffer) => this.#fromClient(chunk));
    server.on('error', () => {}).on('data', (chunk: Buffer) => this.#fromServer(chunk));
    client.on('close', () => {
      if (!this.busy) server.end();
    });
    server.on('close', () => {
      this.#onReady?.reject(new Error('the database is gone'));
      client.end();
      onEnd();
    });
  }

  cut(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  #fromClient(chunk: Buffer): void {
    this.#waiting.push(...this.#readClient(chunk));
    if (!this.busy) void this.#work();
  }

  async #work(): Promise<void> {
    this.busy = true;
    for (let frame = this.#waiting.shift(); frame; frame = this.#waiting.shift()) {
      const isEnd = frame.type === 'Q' || frame.type === 'S';
      if (!isEnd) this.#server.write(frame.bytes);
      else await this.#behave(this.#messageOf(frame)).catch(() => this.cut());
    }
    this.busy = false;
    if (this.#client.destroyed) this.#server.end();
  }

  #messageOf(frame: Frame): Message {
    const { bytes } = frame;
    return {
      appends: appendedTypes(frame),
      backendPid: this.#backendPid,
      text: () => bytes.toString('utf8'),
      pass: () => void this.#server.write(bytes),
      send: () => this.#ask(bytes),
      sendTwice: async () => {
        await this.#ask(bytes);
        const first = this.#kept;
        await this.#ask(bytes);
        this.#kept = first;
      },
      sendHalf: () => void this.#server.write(bytes.subarray(0, bytes.length >> 1)),
      deliver: () => {
        for (const kept of this.#kept ?? []) this.#client.write(kept);
        this.#kept = undefined;
      },
      refuse: () => {
        this.#client.end(lostServer());
        this.#server.destroy();
      },
      cut: () => this.cut(),
    };
  }

  #ask(bytes: Buffer): Promise<void> {
    this.#kept = [];
    return new Promise((resolve, reject) => {
      if (this.#server.destroyed) return reject(new Error('the database is gone'));
      this.#onReady = { resolve, reject };
      this.#server.write(bytes);
    });
  }

  #fromServer(chunk: Buffer): void {
    for (const frame of this.#readServer(chunk)) {
      this.#backendPid ??= backendPid(frame);
      if (this.#kept) this.#kept.push(frame.bytes);
      else this.#client.write(frame.bytes);
      if (frame.type !== 'Z') continue;
      this.#onReady?.resolve();
      this.#onReady = undefined;
    }
  }
}
