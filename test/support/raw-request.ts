import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { timeLimits } from './time-limits.ts';

/** A request whose body is sent byte by byte, or never. */
export interface RawRequest {
  readonly socket: Socket;
  /** The status of the answer; undefined if none has come in time. */
  status(withinMs?: number): Promise<number | undefined>;
  /** What has come so far. */
  text(): string;
}

/** Sends the head of a POST over its own connection. The caller sends the body, or does not. */
export async function sendHead(
  url: string,
  path: string,
  headers: Readonly<Record<string, string | number>>,
  localAddress?: string,
): Promise<RawRequest> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), ...(localAddress !== undefined && { localAddress }) });
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  socket.on('error', () => {});
  await once(socket, 'connect');
  const lines = Object.entries({ host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  const statusOf = () => /^HTTP\/1\.1 (?!100)(\d{3})/.exec(text)?.[1];
  return {
    socket,
    text: () => text,
    async status(withinMs: number = timeLimits.conditionMs) {
      const endsAt = performance.now() + withinMs;
      while (statusOf() === undefined && performance.now() < endsAt && !socket.destroyed) await sleep(5);
      const status = statusOf();
      return status === undefined ? undefined : Number(status);
    },
  };
}
