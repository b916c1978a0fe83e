import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { declaredBytesOf } from './request-values.ts';

/** After so many refusals a connection is closed. */
const mostRefusals = 32;
/** To read the body of a refused request costs as much as one more refusal for each of so many bytes. */
const bytesOfOneRefusal = 65_536;

/**
 * Closes the connections of clients that go on after 429, with what they have not sent yet: what a proxy has for several clients is opened
 * again. The first 429 of a connection never closes it, whatever its body, so that an honest client reads its answer.
 */
export function closeRefusedConnections(app: FastifyInstance): void {
  const refusals = new WeakMap<Socket, number>();
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (reply.statusCode !== 429) return done();
    const { socket } = request.raw;
    const before = refusals.get(socket) ?? 0;
    const after = before + 1 + Math.floor(declaredBytesOf(request.headers) / bytesOfOneRefusal);
    refusals.set(socket, after);
    if (before > 0 && after > mostRefusals) reply.header('connection', 'close');
    done();
  });
}
