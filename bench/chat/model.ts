/**
 * An upstream with one fixed answer, whole or as a stream, sent at once: each event of a stream is a write
 * of its own. Runs as its own process and reports its address to its parent.
 */
import { createServer, type Socket } from 'node:net';
import { boundPort } from '../../src/devnet/ports.ts';
import { splitMessages } from '../wire.ts';
import { answerBody, answerEvents, path } from './terms.ts';

const whole = bytesOf('application/json', answerBody);
const streamHead = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n',
);
const streamChunks = answerEvents
  .map((event) => Buffer.from(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`))
  .concat(Buffer.from('0\r\n\r\n'));
let completions = 0;

function bytesOf(type: string, body: string): Buffer {
  const length = Buffer.byteLength(body);
  return Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n${body}`);
}

function answer(socket: Socket, head: string, body: Buffer): void {
  if (head.split(' ', 2)[1] !== path)
    return void socket.write(bytesOf('application/json', `{"completions":${completions}}`));
  completions++;
  const { stream } = JSON.parse(body.toString()) as { readonly stream?: boolean };
  if (stream !== true) return void socket.write(whole);
  socket.write(streamHead);
  for (const chunk of streamChunks) socket.write(chunk);
}

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.on(
    'data',
    splitMessages((head, body) => answer(socket, head, body)),
  );
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${boundPort(server)}` }));
